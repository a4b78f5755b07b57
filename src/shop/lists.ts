/** Lists by ascending id: the page that a query names, and the link to the next page. */
import { limitUpTo, type Parameter, readQuery } from '../http/query.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import { type Int64, parseInt64 } from '../json/int64.ts';
import type { Page } from '../store/model.ts';

const DEFAULT_LIMIT = 20;
const LIMIT = limitUpTo(100);
const AFTER: Parameter<Int64> = { name: 'after', mustBe: 'an id, a 64-bit integer', parse: parseInt64 };

interface List<I extends Int64> {
  page(asked: { after?: I; limit: number; status?: string }): Page<I>;
}

/** `filters`: the status, where the list can be filtered by it. Throws all faults of the query at once. */
export function pageReply<I extends Int64>(
  path: string,
  query: string,
  list: List<I>,
  filters: readonly Parameter<string>[] = [],
): Reply {
  const [limit = DEFAULT_LIMIT, after, status] = query === '' ? [] : readQuery(query, [LIMIT, AFTER, ...filters]);
  const { texts, next } = list.page({ limit, after: after as I | undefined, status });
  const filter = status === undefined ? '' : `&status=${status}`;
  const link = next === undefined ? [] : ['Link', `<${path}?limit=${limit}${filter}&after=${next}>; rel="next"`];
  return jsonReply(200, `[${texts.join(',')}]`, link);
}
