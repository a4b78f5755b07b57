/** What calls give: the thing itself, and on request what its reply says; lists page by page. */
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
  /** For `ifMatch`, and to ask for a page again. */
  etag: string | undefined;
  limits: Limits | undefined;
  /** Whether the try that was answered made the thing: false of a replay, also of an own earlier try. */
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
  const told = { status, headers, requestId: requestIdIn(headers), limits: limitsIn(headers) };
  const etag = headers.get('etag') || undefined;
  return { data: json as T, ...told, etag, isNew: status === 201 && !isReplay, isReplay, tries };
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

type Query = Record<string, string> & { after: string };

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
    for (let query: Query | undefined; ; ) {
      const response = await this.#ask(query);
      const next = nextQuery(response);
      if (query && next && BigInt(next.after) <= BigInt(query.after)) throw badLink(response, 'back');
      yield pageOf(response, next);
      if (next === undefined) return;
      query = next;
    }
  }

  /** The first page. Given the `etag` of an earlier reply: undefined while that is still how it is. */
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

/** Only the query of the link is taken: so a proxy may serve all under a prefix, and the key goes nowhere else. */
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

/** Of `/v1/pets?after=9>; rel="next last"`: next and last. */
function relationsOf(link: string): string[] {
  const parameters = link.slice(link.indexOf('>')).split(';');
  const rel = parameters.map((one) => one.split('=')).find(([name]) => name.trim().toLowerCase() === 'rel');
  return (rel?.[1] ?? '').toLowerCase().split(/[\s",]+/);
}

/** The list goes by ascending id: so no chain of pages has no end. */
function badLink({ status, requestId, tries }: Answer<unknown>, where: string): PetstoreError {
  return new PetstoreError('bad_reply', `the link to the next page leads ${where}`, { status, requestId, tries });
}
