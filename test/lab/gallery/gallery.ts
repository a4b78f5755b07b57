/**
 * The gallery: clients that are bad, each in one way, and good ones in different shapes; and what each must get. One
 * table, tried over real HTTP in the drill.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { decorrelated, fullJitter, type GalleryClient, GivenUp, type Manner } from './client.ts';
import * as shapes from './shapes.ts';

export interface Exhibit {
  name: string;
  manner?: Manner;
  /** What it does; by default `errand`. */
  errand?: (client: GalleryClient, place: shapes.Place) => Promise<unknown>;
  grade: string;
  /** Checks that fail, and those that only warn. */
  fails?: string[];
  warns?: string[];
  /** Checks that are unseen beside `herd` and `deprecated`. */
  unseen?: string[];
  /** Checks that are seen, or not, or that warn, by chance. */
  maybe?: string[];
  /** In the normal run too. */
  isQuick?: boolean;
  /** Before the client comes. */
  also?: object[];
}

const NO_ANIMAL = 9007199254740991;
const oneByOne = async <T>(many: readonly T[], each: (one: T) => Promise<unknown>) => {
  for (const one of many) await each(one);
};
/** What it gave up is not done; it goes on. */
const unless = (done: Promise<unknown>) => done.catch((error) => error instanceof GivenUp || Promise.reject(error));

/** What a client does otherwise than by itself, in the errand. */
interface Otherwise {
  list?: () => Promise<unknown>;
  order?: (id: number) => Promise<unknown>;
}

/** It lists, pages, adds and orders, and once asks for what cannot be. */
export async function errand(client: GalleryClient, otherwise: Otherwise = {}): Promise<void> {
  const { list = () => client.list(), order = (id) => client.order(id) } = otherwise;
  for (let round = 1; round <= 6; round++) {
    await unless(list());
    await unless(client.add(`Rex ${round}`).then(order));
    await delay(300); // it has other things to do
  }
  await unless(order(NO_ANIMAL));
  await unless(list());
}

const eightRefused = [{ kind: 'unavailable', operation: 'listCategories', times: 8, seconds: 2 }];

/** Eight at a time ask, each for something else. */
const together = (client: GalleryClient) =>
  Promise.all(Array.from({ length: 8 }, (_, n) => client.ask('GET', `/v1/categories?limit=${n + 1}`)));

export const GALLERY: readonly Exhibit[] = [
  // Bad in one way.
  { name: 'does not wait', manner: { told: () => 0 }, grade: 'D', fails: ['retry_after'], isQuick: true },
  {
    ...{ name: 'closes after an error, and comes at once', manner: { told: () => 0, closesAfterErrors: true } },
    ...{ grade: 'D', fails: ['retry_after', 'reuse'] },
  },
  { name: 'waits a second whatever is told', manner: { told: () => 1_000 }, grade: 'D', fails: ['retry_after'] },
  {
    ...{ name: 'waits after a 503, and after no 429', manner: { told: (ms, status) => (status === 429 ? 0 : ms) } },
    ...{ grade: 'D', fails: ['retry_after'] },
  },
  {
    ...{ name: 'waits after a 429 with that operation alone', manner: { holds: 'its operation' } },
    errand: shapes.polled(errand),
    ...{ grade: 'D', fails: ['retry_after'] },
  },
  {
    ...{ name: 'forgets POSTs that fail', manner: { gives: 'up POSTs' }, isQuick: true },
    ...{ grade: 'C', fails: ['finished'], unseen: ['idempotency', 'hopeless'] },
  },
  {
    ...{ name: 'sends nothing again', manner: { gives: 'up' } },
    ...{ grade: 'C', fails: ['finished'], unseen: ['idempotency', 'hopeless'], maybe: ['backoff'] },
  },
  ...[0, 429, 500, 503].map((status) => ({
    ...{ name: `forgets POSTs that get ${status || 'no reply'}`, manner: { forgetsAt: status } },
    ...{ grade: 'C', fails: ['finished'], maybe: ['idempotency'] },
  })),
  { name: 'sends POSTs without a key', manner: { key: 'none' }, grade: 'C', fails: ['idempotency'] },
  { name: 'makes a key for each try', manner: { key: 'each try' }, grade: 'C', fails: ['idempotency'], isQuick: true },
  { name: 'has one key for all', manner: { key: 'one for all' }, grade: 'C', fails: ['idempotency'] },
  { name: 'comes again at once', manner: { backoff: () => 0 }, grade: 'B', fails: ['backoff'] },
  {
    ...{
      name: 'comes again at once after a status alone',
      manner: { backoff: (n, _, status) => (status ? 0 : fullJitter(n)) },
    },
    ...{ grade: 'B', fails: ['backoff'] },
  },
  { name: 'waits the same each time', manner: { backoff: () => 150 }, grade: 'A', warns: ['backoff'] },
  {
    ...{ name: 'is a herd, on time', also: eightRefused, errand: shapes.herd(0) },
    ...{ grade: 'A', fails: ['herd'] },
  },
  {
    ...{ name: 'is a herd, a second late', also: eightRefused, errand: shapes.herd(1_000) },
    ...{ grade: 'A', fails: ['herd'] },
  },
  {
    ...{ name: 'insists on an order for an animal that is sold', manner: { gives: 'never up' } },
    errand: (client) => shapes.insists(client, errand, 'POST', '/v1/store/orders', { petId: 1 }),
    ...{ grade: 'B', fails: ['hopeless'] },
  },
  {
    ...{ name: 'insists on a method that there is not', manner: { gives: 'never up' } },
    errand: (client) => shapes.insists(client, errand, 'PUT', '/v1/pets', { name: 'Rex' }),
    ...{ grade: 'B', fails: ['hopeless'] },
  },
  { name: 'counts pages', errand: shapes.countsPages(errand), grade: 'A', fails: ['paging'] },
  { name: 'asks everything twice', errand: shapes.asksTwice(errand), grade: 'A', fails: ['redundant'] },
  {
    ...{ name: 'opens a connection for each request', manner: { connections: 'each' } },
    ...{ grade: 'B', fails: ['reuse'] },
  },
  {
    ...{ name: 'opens a connection for each request, and leaves it open', manner: { connections: 'left open' } },
    ...{ grade: 'B', fails: ['reuse'] },
  },
  {
    ...{ name: 'opens eight connections anew each time', errand: shapes.waves(errand) },
    ...{ grade: 'B', fails: ['reuse'] },
  },
  ...(['new', 'open'] as const).flatMap((connections): Exhibit[] => {
    const as = (does: string, manner: Manner, grade: string, ...fails: string[]): Exhibit => ({
      ...{ name: `${does}, twelve equal animals at once on ${connections} connections`, grade, fails },
      ...{ manner: { connections: 12, ...manner }, errand: shapes.twelveAtOnce(connections), maybe: ['backoff'] },
    });
    return [
      as('does not wait', { told: () => 0 }, 'D', 'retry_after'),
      as('makes a key for each try', { key: 'each try' }, 'D', 'retry_after', 'idempotency'),
      as('sends POSTs without a key', { key: 'none' }, 'D', 'retry_after', 'idempotency'),
    ];
  }),
  {
    name: 'bans itself',
    errand: shapes.bansItself,
    grade: 'F',
    fails: ['retry_after', 'redundant', 'ban'],
    unseen: shapes.LITTLE,
  },

  // Good, in different shapes.
  { name: 'one connection, full jitter', grade: 'A', isQuick: true },
  { name: 'decorrelated jitter', manner: { backoff: decorrelated }, grade: 'A' },
  {
    ...{ name: 'eight connections', manner: { connections: 8 }, also: eightRefused },
    errand: async (client) => {
      await together(client);
      await errand(client);
    },
    grade: 'A',
  },
  { name: 'two processes on one key', errand: shapes.twoProcesses(errand), grade: 'A' },
  { name: 'four workers that share a queue', manner: { connections: 4 }, errand: shapes.workers, grade: 'A' },
  { name: 'four workers that add equal animals', manner: { connections: 4 }, errand: shapes.equals, grade: 'A' },
  ...(['new', 'open'] as const).map((connections) => ({
    ...{ name: `twelve equal animals at once, on ${connections} connections`, manner: { connections: 12 } },
    ...{ errand: shapes.twelveAtOnce(connections), grade: 'A', maybe: ['backoff'] },
  })),
  {
    name: 'the typed client, twelve equal animals at once',
    errand: shapes.typedTwelve,
    grade: 'A',
    maybe: ['backoff'],
  },
  { name: 'a process for each thing to do, a minute apart', errand: shapes.cron, grade: 'A' },
  { name: 'waits longer than told', manner: { told: (ms) => 2 * ms + 500, backoff: (n) => 400 * n }, grade: 'A' },
  { name: 'a round a day, by the clock of the lab', errand: shapes.overDays(errand), grade: 'A' },
  { name: 'resumes from a Link that it kept', errand: shapes.resumes(errand), grade: 'A' },
  { name: 'behind nginx', errand: shapes.behindNginx(errand), grade: 'A', unseen: ['reuse'] },
  { name: 'the typed client, one call after the other', errand: shapes.typed(oneByOne), grade: 'A' },
  {
    ...{ name: 'the typed client, six calls side by side' },
    errand: shapes.typed((many, each) => Promise.all(many.map(each))),
    ...{ grade: 'A', maybe: ['backoff'] },
  },
  { name: 'the typed client behind nginx', errand: shapes.typedBehindNginx(oneByOne), grade: 'A', unseen: ['reuse'] },
];
