/** Lists by ascending id: the page that is asked for, and the link to the next one. */
import { taggedReply } from '../http/conditions.ts';
import type { TaggedReply } from '../http/reply.ts';
import { Query } from '../http/request.ts';
import { type Int64, parseInt64 } from '../json/int64.ts';
import type { Page } from '../store/model.ts';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

interface PageRequest<S extends string> {
  limit: number;
  /** The last id seen. */
  after: Int64 | undefined;
  status: S | undefined;
}

/** Reads `limit`, `after` and, where the list can be filtered, `status`. Throws all faults at once. */
export function readPageRequest<S extends string>(query: string, statuses: readonly S[] = []): PageRequest<S> {
  const filtered = statuses.length > 0;
  const parameters = new Query(query, filtered ? ['limit', 'status', 'after'] : ['limit', 'after']);
  const limit = parameters.readLimit(MAX_LIMIT, DEFAULT_LIMIT);
  const after = parameters.read('after', parseInt64, 'an id, a 64-bit integer');
  const statusOf = (text: string) => statuses.find((one) => one === text);
  const status = parameters.read('status', statusOf, `one of ${statuses.join(', ')}`);
  parameters.end();
  return { limit, after, status };
}

/** The id after which a page of ids 1, 2, 3, … begins. */
export function firstAfter(after: Int64 | undefined): number {
  return after === undefined || after < 0 ? 0 : Number(after);
}

export function pageReply<T extends { id: Int64 }>(
  path: string,
  { limit, status }: PageRequest<string>,
  { items, more }: Page<T>,
  json: (item: T) => string,
): TaggedReply {
  const body = `[${items.map(json).join(',')}]`;
  if (!more) return taggedReply(body);
  const filter = status === undefined ? '' : `&status=${status}`;
  const after = items[items.length - 1].id;
  const link = `<${path}?limit=${limit}${filter}&after=${after}>; rel="next"`;
  return taggedReply(body, ['Link', link], link);
}
