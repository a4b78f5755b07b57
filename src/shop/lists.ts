/** Lists by ascending id: the page that a query names, its JSON, and the link to the next page. */

import { limitUpTo, type Parameter, readQuery } from '../http/edges.ts';
import { asBytes, bytesReply, JSON_UTF_8, type Reply } from '../http/reply.ts';
import { type Int64, parseInt64 } from '../json/int64.ts';
import {
  BLOCK_ROWS,
  blockOf,
  type CountedTable,
  indexInBlock,
  type Order,
  type Page,
  type Pet,
} from '../store/model.ts';

const DEFAULT_LIMIT = 20;
const LIMIT = limitUpTo(100);
const AFTER: Parameter<Int64> = { name: 'after', mustBe: 'an id, a 64-bit integer', parse: parseInt64 };

interface PageQuery<S extends string> {
  readonly limit: number;
  /** The last id seen. */
  readonly after: Int64 | undefined;
  readonly status: S | undefined;
}

/** Reads `limit`, `after` and, where the list can be filtered, `status`. Throws all faults at once. */
export function readPageQuery<S extends string>(query: string, filters: readonly Parameter<S>[] = []): PageQuery<S> {
  if (query === '') return { limit: DEFAULT_LIMIT, after: undefined, status: undefined };
  const [limit = DEFAULT_LIMIT, after, status] = readQuery(query, [LIMIT, AFTER, ...filters]);
  return { limit, after, status };
}

/** As a number from 0 on: no counted id is below 1, or as high as one that is not exact. */
const asCounted = (after: Int64 | undefined): number => (after === undefined || after < 0 ? 0 : Number(after));

interface PageText {
  /** The JSON of the rows with commas between, one character for each byte. */
  readonly text: string;
  /** The `after` of the next page, if there is one. */
  readonly next: Int64 | undefined;
}

export function textOf<R extends { id: Int64 }>({ items, more }: Page<R>, json: (row: R) => string): PageText {
  return { text: asBytes(items.map(json).join(',')), next: more ? items[items.length - 1].id : undefined };
}

export function pageReply(path: string, { limit, status }: PageQuery<string>, { text, next }: PageText): Reply {
  const filter = status === undefined ? '' : `&status=${status}`;
  const link = next === undefined ? [] : ['Link', `<${path}?limit=${limit}${filter}&after=${next}>; rel="next"`];
  return bytesReply(200, JSON_UTF_8, `[${text}]`, link);
}

interface Block {
  readonly revision: number;
  /** The JSON of each row, followed by a comma. One flat string, of which a page is a slice. */
  readonly text: string;
  /** Where the text of each id begins, and where the last ends; an id without a row has no text. */
  readonly offsets: readonly number[];
}

/**
 * For speed: the rows of a table as JSON, in blocks of `BLOCK_ROWS` ids. The text of a block is made when one of its
 * rows is first read, and made anew when one of them has changed.
 */
export class RowTexts<R extends Pet | Order> {
  readonly #table: CountedTable<R>;
  readonly #json: (row: R) => string;
  readonly #blocks: (Block | undefined)[] = [];

  constructor(table: CountedTable<R>, json: (row: R) => string) {
    this.#table = table;
    this.#json = json;
  }

  /** The row with this id as a reply. */
  one(id: number): Reply | undefined {
    if (this.#table.get(id) === undefined) return undefined;
    const { text, offsets } = this.#block(blockOf(id));
    const index = indexInBlock(id);
    return bytesReply(200, JSON_UTF_8, text.slice(offsets[index], offsets[index + 1] - 1));
  }

  /** A page by status is put together row by row, since its rows lie anywhere in their blocks. */
  page({ after, limit, status }: PageQuery<R['status']>): PageText {
    const counted = asCounted(after);
    if (status === undefined) return this.#slice(counted, limit);
    return textOf(this.#table.page({ after: counted, limit, status }), this.#json);
  }

  /** Goes block by block up to the first row that is one too many: that there is one says that a page follows. */
  #slice(after: number, limit: number): PageText {
    let text = '';
    let found = 0;
    let last = 0;
    const lastBlock = blockOf(this.#table.lastId);
    for (let number = blockOf(after + 1); number <= lastBlock; number++) {
      if (this.#table.blockRevision(number) === 0) continue; // all its rows were removed
      const { text: all, offsets } = this.#block(number);
      const start = Math.max(0, after - number * BLOCK_ROWS);
      let end = start;
      for (; end < BLOCK_ROWS; end++) {
        if (offsets[end + 1] === offsets[end]) continue; // no row has this id
        if (found === limit) break;
        found++;
        last = number * BLOCK_ROWS + end + 1;
      }
      if (offsets[end] > offsets[start]) {
        const part = all.slice(offsets[start], offsets[end] - 1); // without the last comma
        text = text === '' ? part : `${text},${part}`;
      }
      if (end < BLOCK_ROWS) return { text, next: last };
    }
    return { text, next: undefined };
  }

  #block(number: number): Block {
    const revision = this.#table.blockRevision(number);
    const known = this.#blocks[number];
    return known?.revision === revision ? known : (this.#blocks[number] = this.#make(number, revision));
  }

  #make(number: number, revision: number): Block {
    const offsets = [0];
    let text = '';
    for (let id = number * BLOCK_ROWS + 1; id <= (number + 1) * BLOCK_ROWS; id++) {
      const row = this.#table.get(id);
      if (row !== undefined) text += `${asBytes(this.#json(row))},`;
      offsets.push(text.length);
    }
    const flat = Buffer.from(text, 'latin1').toString('latin1'); // one string, where V8 would keep a tree of its parts
    return { revision, text: flat, offsets };
  }
}
