/** Categories: a name for an id that the caller chooses. */

import { notFound } from '../http/errors.ts';
import { refuseParameters } from '../http/query.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import { parseInt64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { readJson } from '../json/reader.ts';
import { type Call, type HandlerContext, write } from './handler.ts';
import { pageReply } from './lists.ts';
import { NAME_LENGTH } from './pets.ts';

export function listCategories({ query }: Call, { store }: HandlerContext): Reply {
  return pageReply('/v1/categories', query, store.read.categories);
}

export async function putCategory(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const name = members.text('name', NAME_LENGTH);
  members.end({ id: 'stands in the path; leave it out' });
  const id = parseInt64(call.param);
  if (id === undefined) throw notFound('category: its id is a 64-bit integer');
  return write(context, call, (tx) => {
    const isNew = tx.categories.text(id) === undefined;
    return jsonReply(isNew ? 201 : 200, tx.categories.put({ id, name }));
  });
}
