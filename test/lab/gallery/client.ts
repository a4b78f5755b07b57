/** A client on plain sockets, good unless it is told to be bad in one way: what the gallery is made of. */
import { randomUUID } from 'node:crypto';
import { Agent, type OutgoingHttpHeaders, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** In which ways a client may be other than good. */
export interface Manner {
  /** How many it keeps open at most; `each`: a new one for every request, `left open`: which it does not close. */
  connections?: number | 'each' | 'left open';
  /** How long it waits when a refusal told so many ms; otherwise so long, and a little by chance where it has several. */
  told?: (ms: number, status: number) => number;
  /** Holds back what is of the same operation alone; otherwise all that it asks. */
  holds?: 'its operation';
  /** How long it waits after that many failures in a row for which nothing was told. */
  backoff?: (failures: number, before: number, status: number) => number;
  /** Lets its connection go after an error. */
  closesAfterErrors?: boolean;
  /** What it does with a request that failed: gives it up, or insists on it even where that is hopeless. */
  gives?: 'up' | 'up POSTs' | 'never up';
  /** Forgets a POST that gets this status; 0: no reply. */
  forgetsAt?: number;
  /** Under which key it sends a POST; otherwise one key for each intention. */
  key?: 'none' | 'each try' | 'one for all';
}

interface Answer {
  status: number;
  /** Undefined: the reply was lost. */
  json: { id: number; code: string } | undefined;
  next: string | undefined;
  retryAfterMs: number | undefined;
}

const LEAST_MS = 60;
const SPREAD_MS = 3_000;
const MAX_TRIES = 9;
const INSISTS = 6;
const LOST: Answer = { status: 0, json: undefined, next: undefined, retryAfterMs: undefined };

export class GivenUp extends Error {}

export class GalleryClient {
  readonly #origin: string;
  readonly #key: string;
  readonly #manner: Manner;
  #agent: Agent;
  /** Until when it waits, by operation: what one request was told holds for others. */
  readonly #heldUntil = new Map<string, number>();

  constructor(origin: string, key: string, manner: Manner = {}) {
    this.#origin = origin;
    this.#key = key;
    this.#manner = manner;
    this.#agent = this.#newAgent();
  }

  #newAgent(): Agent {
    const { connections = 1 } = this.#manner;
    if (connections === 'each') return new Agent();
    return new Agent({ keepAlive: true, maxSockets: connections === 'left open' ? 1 : connections });
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Until it is answered, or given up: then it throws. */
  async ask(method: string, path: string, body?: object): Promise<Answer> {
    const { gives, forgetsAt, key, closesAfterErrors, holds, connections } = this.#manner;
    const { told = (ms: number) => ms, backoff = fullJitter } = this.#manner;
    const intention = key === 'one for all' ? 'the-only-one' : randomUUID();
    const held = holds === undefined ? '' : `${method} ${path.split('?')[0]}`;
    const waitMs = () => (this.#heldUntil.get(held) ?? 0) - Date.now();
    for (let tries = 1, waited = LEAST_MS; tries <= (gives === 'never up' ? INSISTS : MAX_TRIES); tries++) {
      while (waitMs() > 0) {
        await delay(waitMs() + (typeof connections === 'number' ? Math.random() * SPREAD_MS : 0));
      }
      const mark = key === 'each try' ? randomUUID() : intention;
      const headers = method === 'POST' && key !== 'none' ? { 'idempotency-key': mark } : {};
      if (connections === 'left open') this.#agent = this.#newAgent();
      const answer = await this.#send(method, path, body, headers).catch(() => LOST);
      const isRefused = answer.status >= 400 && answer.status < 500 && answer.status !== 429;
      const isDone = answer.json !== undefined && (answer.status < 300 || (isRefused && gives !== 'never up'));
      if (isDone) return answer;
      if (closesAfterErrors) this.close();
      const { retryAfterMs } = answer;
      if (retryAfterMs !== undefined) {
        const until = Date.now() + told(retryAfterMs, answer.status);
        this.#heldUntil.set(held, Math.max(this.#heldUntil.get(held) ?? 0, until));
      }
      if (gives === 'up' || (method === 'POST' && (gives === 'up POSTs' || forgetsAt === answer.status))) break;
      if (retryAfterMs === undefined) await delay((waited = backoff(tries, waited, answer.status)));
    }
    throw new GivenUp(`${method} ${path}`);
  }

  #send(method: string, path: string, body: object | undefined, more: OutgoingHttpHeaders): Promise<Answer> {
    const text = body && JSON.stringify(body);
    const type = text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const headers = { authorization: `Bearer ${this.#key}`, ...type, ...more };
    return new Promise((resolve, reject) => {
      const req = request(this.#origin + path, { method, agent: this.#agent, headers }, async (res) => {
        try {
          let got = '';
          for await (const part of res.setEncoding('utf8')) got += part;
          const next = /<([^>]+)>; rel="next"/.exec(String(res.headers.link ?? ''))?.[1];
          const seconds = res.headers['retry-after'];
          const retryAfterMs = seconds === undefined ? undefined : 1_000 * Number(seconds);
          resolve({ status: res.statusCode!, json: JSON.parse(got), next, retryAfterMs });
        } catch (error) {
          reject(error); // it broke off
        }
      });
      req.on('error', reject).end(text);
    });
  }

  /** All pages by their Links, from the first or from one that was kept. */
  async list(from = '/v1/pets?limit=10', pages = Number.POSITIVE_INFINITY): Promise<string | undefined> {
    let next: string | undefined = from;
    for (let n = 0; next !== undefined && n < pages; n++) ({ next } = await this.ask('GET', next));
    return next;
  }

  async add(name: string): Promise<number> {
    const { status, json } = await this.ask('POST', '/v1/pets', { name, categoryId: 1 });
    if (status !== 201) throw new GivenUp(`${name} was refused`);
    return json!.id;
  }

  order(petId: number): Promise<Answer> {
    return this.ask('POST', '/v1/store/orders', { petId });
  }
}

const grown = (failures: number) => 2 * LEAST_MS * 2 ** failures;
export const fullJitter = (failures: number): number => Math.random() * grown(failures);
export const decorrelated = (_: number, before: number): number => LEAST_MS + Math.random() * (3 * before - LEAST_MS);
