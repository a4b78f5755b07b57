import type { TestContext } from 'node:test';
import { makeKey } from '../../src/access/keys.ts';
import { type ClientOptions, PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { SetClock } from '../clock.ts';
import { Front } from './front.ts';

/** Time that passes only when the client waits, and how long it waited each time. */
export class Time extends SetClock {
  readonly waits: number[] = [];
  sleep = async (ms: number): Promise<void> => {
    this.waits.push(ms);
    this.advance(ms);
  };
}

export interface Harness {
  front: Front;
  time: Time;
  client: PetstoreClient;
}

export const KEY = makeKey('production');

/** A client behind a front; what is random is at its greatest, so that every backoff has the length of its cap. */
export async function harness(
  t: TestContext,
  fault: Front['fault'],
  options: Partial<ClientOptions> | ((frontUrl: string) => string) = {},
  behind = '',
): Promise<Harness> {
  const front = await new Front(fault, behind).listen(t);
  const time = new Time();
  t.mock.method(Math, 'random', () => 1 - Number.EPSILON);
  const client = new PetstoreClient({
    baseUrl: typeof options === 'function' ? options(front.url) : front.url,
    key: KEY,
    clock: time,
    ...options,
  });
  t.after(() => client.close());
  return { front, time, client };
}

/** What a call rejects with; fails when it resolves, or rejects with anything else. */
export async function failure(call: Promise<unknown>): Promise<PetstoreError> {
  const result = await call.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (error) => error,
  );
  if (!(result instanceof PetstoreError)) throw result;
  return result;
}

export async function all<T>(listing: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of listing) items.push(item);
  return items;
}
