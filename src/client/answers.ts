/** Results of calls: the data, on request with the facts of its reply; lists page by page. */
import { parseInt64 } from '../json/int64.ts';
import type { Done } from './calls.ts';
import { PetstoreError } from './errors.ts';
import { type Limits, limitsIn, requestIdIn } from './exchange.ts';
import { type Id, readId } from './ids.ts';

export interface Answer<T> {
  data: T;
  status: number;
  headers: Headers;
  requestId: string | undefined;
  /** For `ifMatch`, and for asking again for a page. */
  etag: string | undefined;
  limits: Limits | undefined;
  /** Whether the answered try made the thing: false for a replay, also of an earlier try of the same call. */
  isNew: boolean;
  /** Whether it is the reply to an earlier request under the same Idempotency-Key. */
  isReplay: boolean;
  tries: number;
}

/** A promise of the data; `withResponse()` gives the facts of the reply too. */
export interface Call<T> extends Promise<T> {
  withResponse(): Promise<Answer<T>>;
}

export function answerTo<T>({ reply: { status, headers, json }, tries }: Done): Answer<T> {
  const isReplay = headers.get('idempotent-replayed') === 'true';
  const told = { status, headers, requestId: requestIdIn(headers), limits: limitsIn(headers) };
  const etag = headers.get('etag') || undefined;
  return { data: json as T, ...told, etag, isNew: status === 201 && !isReplay, isReplay, tries };
}

export function callOf<T>(answer: Promise<Answer<T>>): Call<T> {
  const data = answer.then(({ data }) => data);
  const withResponse = () => {
    data.catch(() => {}); // a caller of withResponse gets the error there
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

type Query = Record<string, string> & { after: string };

/** A list, read thing by thing (`for await`) or by pages. It may be read more than once: each time it asks anew. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #ask: (query?: Query, etag?: string) => Promise<Answer<T[]>>;

  constructor(ask: (query?: Query, etag?: string) => Promise<Answer<T[]>>) {
    this.#ask = ask;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for await (const { items } of this.pages()) yield* items;
  }

  async *pages(): AsyncGenerator<Page<T>, void> {
    for (let query: Query | undefined; ; ) {
      const response = await this.#ask(query);
      const next = nextQuery(response);
      if (query && next && BigInt(next.after) <= BigInt(query.after)) throw badLink(response, 'back');
      yield pageOf(response, next);
      if (next === undefined) return;
      query = next;
    }
  }

  /** The first page. Given the `etag` of an earlier reply: undefined if the page has not changed since. */
  async page(): Promise<Page<T>>;
  async page(etag: string): Promise<Page<T> | undefined>;
  async page(etag?: string): Promise<Page<T> | undefined> {
    const response = await this.#ask(undefined, etag);
    if (response.status === 304) return undefined;
    return pageOf(response, nextQuery(response));
  }
}

function pageOf<T>(response: Answer<T[]>, next: Query | undefined): Page<T> {
  return { items: response.data, after: next && readId(next.after), response };
}

/** Takes only the query of the link: so a proxy may serve under a prefix, and the key is sent to no other host. */
function nextQuery(response: Answer<unknown>): Query | undefined {
  const links = response.headers.get('link') ?? '';
  const next = links.split('<').find((link) => relationsOf(link).includes('next'));
  if (next === undefined) return undefined;
  const target = next.slice(0, next.indexOf('>'));
  const query = new URLSearchParams(target.includes('?') ? target.slice(target.indexOf('?')) : '');
  const after = query.get('after') ?? '';
  if (parseInt64(after) === undefined) throw badLink(response, 'to no id');
  return { ...Object.fromEntries(query), after };
}

/** The relations of a link: next and last, in `/v1/pets?after=9>; rel="next last"`. */
function relationsOf(link: string): string[] {
  const parameters = link.slice(link.indexOf('>')).split(';');
  const rel = parameters.map((one) => one.split('=')).find(([name]) => name.trim().toLowerCase() === 'rel');
  return (rel?.[1] ?? '').toLowerCase().split(/[\s",]+/);
}

/** Lists go by ascending id: a link that goes back would make a chain of pages without an end. */
function badLink({ status, requestId, tries }: Answer<unknown>, where: string): PetstoreError {
  return new PetstoreError('bad_reply', `the link to the next page leads ${where}`, { status, requestId, tries });
}
