/** What calls give: the thing itself, and on request what its reply says; lists page by page. */
import type { Done } from './calls.ts';
import { PetstoreError } from './errors.ts';
import { type Limits, limitsIn } from './exchange.ts';
import { type Id, readId } from './ids.ts';

export interface Answer<T> {
  data: T;
  status: number;
  headers: Headers;
  requestId: string | undefined;
  /** For `ifMatch`, and to ask for a page again. */
  etag: string | undefined;
  limits: Limits | undefined;
  /** Whether this call made the thing, or changed one that there was. */
  isNew: boolean;
  /** Whether it is the reply to an earlier request under the same Idempotency-Key. */
  isReplay: boolean;
  tries: number;
}

/** A promise of what was asked for, which can tell of the reply too. */
export interface Call<T> extends Promise<T> {
  withResponse(): Promise<Answer<T>>;
}

export function answerTo<T>({ reply: { status, headers, json }, tries }: Done): Answer<T> {
  const isReplay = headers.get('idempotent-replayed') === 'true';
  const [requestId, etag] = ['x-request-id', 'etag'].map((name) => headers.get(name) ?? undefined);
  const told = { status, headers, requestId, etag, limits: limitsIn(headers) };
  return { data: json as T, ...told, isNew: status === 201 && !isReplay, isReplay, tries };
}

export function callOf<T>(answer: Promise<Answer<T>>): Call<T> {
  const data = answer.then(({ data }) => data);
  const withResponse = () => {
    data.catch(() => {}); // who asks for the answer hears of the error there
    return answer;
  };
  return Object.assign(data, { withResponse });
}

export interface Page<T> {
  items: T[];
  /** To go on behind this page, as the option of this name; undefined on the last one. */
  after: Id | undefined;
  response: Answer<T[]>;
}

type Query = Record<string, string>;

/** Of all things, one by one (`for await`), or of pages. It may be read more than once: each time it asks anew. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #ask: (query?: Query, etag?: string) => Promise<Answer<T[]>>;

  constructor(ask: (query?: Query, etag?: string) => Promise<Answer<T[]>>) {
    this.#ask = ask;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const { items } of this.pages()) yield* items;
  }

  async *pages(): AsyncGenerator<Page<T>, void> {
    for (let query: Query | undefined, isFirst = true; isFirst || query !== undefined; isFirst = false) {
      const response = await this.#ask(query);
      const next = nextQuery(response.headers.get('link') ?? '');
      if (next !== undefined && query?.after === next.after) {
        throw new PetstoreError('bad_reply', 'the link to the next page leads to this same page');
      }
      yield pageOf(response, next);
      query = next;
    }
  }

  /** The first page. Given the `etag` of an earlier reply: undefined while that is still how it is. */
  async page(): Promise<Page<T>>;
  async page(etag: string): Promise<Page<T> | undefined>;
  async page(etag?: string): Promise<Page<T> | undefined> {
    const response = await this.#ask(undefined, etag);
    if (response.status === 304) return undefined;
    return pageOf(response, nextQuery(response.headers.get('link') ?? ''));
  }
}

function pageOf<T>(response: Answer<T[]>, next: Query | undefined): Page<T> {
  const after = next?.after === undefined ? undefined : readId(next.after);
  return { items: response.data, after, response };
}

const NEXT_LINK = /<[^<>?]*([^<>]*)>[^<]*;\s*rel\s*=\s*"?[^",;<]*\bnext\b/i;

/** Only the query of the link is taken: so a proxy may serve all under a prefix, and the key goes nowhere else. */
function nextQuery(links: string): Query | undefined {
  const query = NEXT_LINK.exec(links)?.[1];
  return query === undefined ? undefined : Object.fromEntries(new URLSearchParams(query));
}
