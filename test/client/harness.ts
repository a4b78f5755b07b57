import type { TestContext } from 'node:test';
import { makeKey } from '../../src/access/keys.ts';
import type { Calls } from '../../src/client/calls.ts';
import { type ClientOptions, PetstoreClient, PetstoreError } from '../../src/client/client.ts';
import { SetClock } from '../clock.ts';
import { Front } from './front.ts';

/** Time that passes only when a client waits, and how long it waited each time. */
export class Time extends SetClock {
  readonly waits: number[] = [];

  readonly timing: Timing = {
    now: () => this.now(),
    sleep: async (ms) => {
      this.waits.push(ms);
      this.advance(ms);
    },
  };
}

/** What a client goes by, given in an option that no user is told of. Where it says nothing, the client's own. */
export type Timing = NonNullable<ConstructorParameters<typeof Calls>[1]['timing']>;

export const KEY = makeKey('production');
export const newPet = { name: 'Rex', categoryId: 1 };

/** A client behind a front; what is random is at its greatest, so that every backoff has the length of its cap. */
export async function harness(
  t: TestContext,
  fault: Front['fault'],
  {
    behind = '',
    path = '/v1',
    time = new Time(),
    timing = time.timing,
    ...options
  }: Partial<ClientOptions & Extra> = {},
) {
  const front = await new Front(fault, behind).listen(t);
  t.mock.method(Math, 'random', () => 1 - Number.EPSILON);
  const given = { key: KEY, ...options, timing };
  const client = new PetstoreClient({ baseUrl: front.url.replace('/v1', path), ...given });
  t.after(() => client.close());
  return { front, time, client };
}

/** `behind`: the service's address. `path`: the end of the base URL. */
type Extra = { behind: string; path: string; time: Time; timing: Timing };

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
