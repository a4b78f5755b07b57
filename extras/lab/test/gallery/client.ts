/** A client on plain sockets, good unless it is made bad in one way. */
import { randomUUID } from 'node:crypto';
import { Agent, type OutgoingHttpHeaders, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** What a client does otherwise than a good one. */
export interface Manner {
  /** The most connections that it has open; `each`: a new one for every request. By default one. */
  connections?: number | 'each';
  /** How long it waits for a Retry-After of so many ms. */
  heeds?: (ms: number, status: number) => number;
  /** It heeds a Retry-After in that operation alone; otherwise in all that it sends. */
  holds?: 'its operation';
  /** How long it waits after so many failures in a row without Retry-After. */
  backoff?: (failures: number) => number;
  /** Whether it gives up a request that got this status; 0: no reply. */
  givesUp?: (method: string, status: number) => boolean;
  /** The Idempotency-Key of a POST; by default one for all its tries. */
  key?: 'none' | 'each try' | 'one for all';
}

interface Answer {
  status: number;
  /** Undefined: the reply was lost. */
  json: { id: number; code: string } | undefined;
  next: string | undefined;
  retryAfterMs: number | undefined;
}

const BASE_MS = 120;
const SPREAD_MS = 3_000;
const MAX_TRIES = 9;
const LOST: Answer = { status: 0, json: undefined, next: undefined, retryAfterMs: undefined };

export const fullJitter = (failures: number): number => Math.random() * BASE_MS * 2 ** failures;
const halfJitter = (failures: number) => (0.5 + Math.random() / 2) * BASE_MS * 2 ** failures;

export class GivenUp extends Error {}

export class GalleryClient {
  readonly #origin: string;
  readonly #key: string;
  readonly #manner: Manner;
  readonly #agent: Agent;
  /** Until when it waits, by operation, or for all under ''. */
  readonly #heldUntil = new Map<string, number>();

  constructor(origin: string, key: string, manner: Manner = {}) {
    this.#origin = origin;
    this.#key = key;
    this.#manner = manner;
    const { connections = 1 } = manner;
    this.#agent = connections === 'each' ? new Agent() : new Agent({ keepAlive: true, maxSockets: connections });
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Until it is answered, or given up: then it throws. */
  async ask(method: string, path: string, body?: object): Promise<Answer> {
    const { key, holds, connections = 1 } = this.#manner;
    const { heeds = (ms: number) => ms, backoff = halfJitter, givesUp = () => false } = this.#manner;
    const ownKey = key === 'one for all' ? 'the-only-one' : randomUUID();
    const held = holds === undefined ? '' : `${method} ${path.split('?')[0]}`;
    const waitMs = () => (this.#heldUntil.get(held) ?? 0) - Date.now();
    for (let tries = 1; tries <= MAX_TRIES; tries++) {
      while (waitMs() > 0) await delay(waitMs() + (connections === 1 ? 0 : Math.random() * SPREAD_MS));
      const headers = { 'idempotency-key': key === 'each try' ? randomUUID() : ownKey };
      const hasKey = method === 'POST' && key !== 'none';
      const answer = await this.#send(method, path, body, hasKey ? headers : {}).catch(() => LOST);
      const { status, json, retryAfterMs } = answer;
      if (json !== undefined && status < 500 && status !== 429) return answer;
      if (retryAfterMs !== undefined) {
        const until = Date.now() + heeds(retryAfterMs, status);
        this.#heldUntil.set(held, Math.max(this.#heldUntil.get(held) ?? 0, until));
      }
      if (givesUp(method, status)) break;
      if (retryAfterMs === undefined) await delay(backoff(tries));
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

  /** All pages by their Links. */
  async list(first = '/v1/pets?limit=10'): Promise<void> {
    for (let next: string | undefined = first; next !== undefined; ) ({ next } = await this.ask('GET', next));
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
