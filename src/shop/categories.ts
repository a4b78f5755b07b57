/** Categories: a name for an id that the caller chooses. */
import { etagOf, preconditionOf } from '../http/conditions.ts';
import { jsonReply, type Reply, type TaggedReply } from '../http/reply.ts';
import { refuseParameters } from '../http/request.ts';
import { parseInt64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { readJson } from '../json/reader.ts';
import type { Category } from '../store/model.ts';
import { type Call, notFound, type ReadCall, type Shop } from './call.ts';
import { pageReply, readPageRequest } from './paging.ts';
import { NAME_LENGTH } from './pets.ts';

export function listCategories(shop: Shop, call: ReadCall): TaggedReply {
  const page = readPageRequest(call.query);
  return pageReply('/v1/categories', page, shop.store.read.categories.page(page.after, page.limit), categoryJson);
}

export function putCategory(_: Shop, call: Call): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const name = members.text('name', NAME_LENGTH);
  members.end({ id: 'stands in the path; leave it out' });
  const id = parseInt64(call.param);
  if (id === undefined) throw notFound('category: its id is a 64-bit integer');
  const mustHold = preconditionOf(call.conditions);
  const by = call.caller.id;
  let isNew = false;
  return call
    .write((ahead) => {
      const before = ahead.categories.get(id);
      mustHold(before && etagOf(categoryJson(before)));
      isNew = before === undefined;
      return { op: 'setCategory', category: { id, name }, by };
    })
    .then(({ category }) => {
      const json = categoryJson(category);
      return jsonReply(isNew ? 201 : 200, json, ['ETag', etagOf(json)]);
    });
}

function categoryJson({ id, name }: Category): string {
  return `{"id":${id},"name":${JSON.stringify(name)}}`;
}
