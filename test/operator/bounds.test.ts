/**
 * Bounds of the operator's side. A wait is raced with a timer of this process that is set to several times as long: of
 * two timers of one process the shorter ends first, however busy the machine is.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { isoTime } from '../../src/digits.ts';
import { openAdmin } from '../../src/operator/admin.ts';
import { type Context, command } from '../../src/operator/command.ts';
import { CommandError, EXIT } from '../../src/operator/exit.ts';
import { Logger } from '../../src/operator/logging.ts';
import { triedWhileInUse } from '../../src/operator/opening.ts';
import { askServer } from '../../src/operator/reach.ts';
import { READY } from '../../src/operator/ready.ts';
import { adminSocket } from '../../src/operator/sockets.ts';
import { SetClock } from '../clock.ts';
import { temporary } from '../program.ts';
import { aKey } from '../store/opened.ts';
import { withStore, workplace } from './workplace.ts';

const MAX_LAST_LINES_MS = 250;
const MAX_ANSWER_WAIT_MS = 3_000;
const MAX_IN_USE_WAIT_MS = 3_000;
const MAX_LAST_CALLS_MS = 2_000;
const MAX_ANSWER_MS = 2_500;
const MAX_DAYS = 4_096;
const MAX_SCRAPERS = 16;
const MAX_RECORD_KEYS = 10_000;
const MAX_BATCH_ANIMALS = 250;
const MAX_BATCH_CHARS = 16_384;
const DAY_MS = 86_400_000;
const FILE = 'store-000001.jsonl';
const NO_LOG = { info() {}, warn() {}, error() {} };

/** The outcome of a wait with that bound, an error as its message; or that it took many times as long. */
async function outcome(waiting: Promise<unknown>, boundMs: number): Promise<unknown> {
  const late = new AbortController();
  const tooLate = wait(8 * boundMs, 'it took too long', { signal: late.signal }).catch(() => {});
  const told = waiting.catch((error: Error) => error.message);
  return Promise.race([told, tooLate]).finally(() => late.abort());
}

/** A data directory, with a server that takes connections and says nothing. */
async function silentServer(t: TestContext) {
  const dir = path.join(await temporary(t), 'data');
  mkdirSync(dir, { mode: 0o700 });
  const server = createServer((socket) => t.after(() => socket.on('error', () => {}).destroy()));
  t.after(() => server.close());
  return { dir, server };
}

const ask = (dir: string, name: string) =>
  askServer(dir, name, { words: [], variables: {} }, { input: Readable.from([]), tell: async () => {} });

describe('waits', { concurrency: true }, () => {
  test('the end of the process waits a quarter of a second for the reader of its log', async () => {
    const log = new Logger({ out: new Writable({ write() {} }), clock: new SetClock() }); // takes a line, and is never done
    log.info('the last line');
    assert.equal(await outcome(log.close(), MAX_LAST_LINES_MS), undefined);
  });

  test('a command waits 3 s for a server that has its connection and does not answer', async (t) => {
    const { dir, server } = await silentServer(t);
    await once(server.listen(adminSocket(dir)), 'listening');
    const told = await outcome(ask(dir, 'keys list'), MAX_ANSWER_WAIT_MS);
    assert.equal(told, `${dir} is in use by a server that does not answer; it may be stopped`);
  });

  test('a start tries for 3 s to have the store, then it says why it has not', async () => {
    let tries = 0;
    const work = async () => {
      tries++;
      throw new CommandError(EXIT.inUse, 'data is in use');
    };
    assert.equal(await outcome(triedWhileInUse(work), MAX_IN_USE_WAIT_MS), 'data is in use');
    assert.ok(tries > 1, `${tries} tries`);
  });

  test('at the end of the server a command under way has 2 s, then it is told that its outcome is unknown', async (t) => {
    const { dir } = await silentServer(t);
    let begin = () => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const stuck = command({
      name: 'stuck',
      does: 'never end',
      options: {},
      call: () => {
        begin();
        return new Promise<undefined>(() => {});
      },
    });
    const admin = await openAdmin(dir, { context: {} as Context, calls: [stuck], log: NO_LOG });
    const asked = ask(dir, 'stuck').catch((error: Error) => error.message);
    await begun;
    assert.equal(await outcome(admin.close(), MAX_LAST_CALLS_MS), undefined);
    assert.equal(await asked, 'the server ended before it answered; look before you repeat it');
  });

  test('petstore ready waits 2.5 s for an answer', async (t) => {
    const { server } = await silentServer(t);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const told = await outcome((async () => READY.run!({ host: '127.0.0.1', port }, async () => {}))(), MAX_ANSWER_MS);
    assert.equal(told, `http://127.0.0.1:${port}/readyz is not ready: no answer in time`);
  });
});

test('the texts of 4,096 days are kept; with one more all are forgotten, and made again', (t) => {
  const { mock } = t.mock.method(Date.prototype, 'toISOString');
  const made = (from: number, count: number) => {
    const before = mock.callCount();
    for (let day = from; day < from + count; day++) isoTime(day * DAY_MS);
    return mock.callCount() - before;
  };
  const FIRST = 10_000; // no other test has asked for them
  assert.equal(made(FIRST, MAX_DAYS), MAX_DAYS);
  assert.equal(made(FIRST, MAX_DAYS), 0);
  assert.equal(made(FIRST + MAX_DAYS, 1), 1);
  assert.equal(made(FIRST, 1), 1);
});

test('sixteen connections have the metrics at a time: one more is closed without an answer', async (t) => {
  const { serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0');
  while (!server.stderr().includes('"message":"listening"')) await once(server.process.stderr!, 'data');
  const { port } = new URL(/"metrics":"(http:[^"]+)"/.exec(server.stderr())![1]);
  // All connect before any is served: each stays open behind its reply.
  const sockets = Array.from({ length: MAX_SCRAPERS + 1 }, () => connect(Number(port), '127.0.0.1'));
  const first = await Promise.all(
    sockets.map(async (socket) => {
      t.after(() => socket.destroy());
      socket.on('error', () => {}).write('GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
      const said = new Promise((resolve) => socket.once('data', (bytes) => resolve(String(bytes).split('\r\n')[0])));
      const closed = new Promise((resolve) => socket.once('close', () => resolve('closed')));
      return Promise.race([said, closed]);
    }),
  );
  assert.deepEqual(first.sort(), [...Array(MAX_SCRAPERS).fill('HTTP/1.1 200 OK'), 'closed'].sort());
  const told = '"message":"a connection for metrics was closed: 16 others are open"';
  while (!server.stderr().includes(told)) await once(server.process.stderr!, 'data');
});

/** The changes of a kind in the file of a store, in their order. */
const changesIn = (dir: string, op: string) =>
  readFileSync(path.join(dir, FILE), 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"op":"${op}"`))
    .map((line) => JSON.parse(line));

test('a record of usage has 10,000 keys: of more the others stand in the next', async (t) => {
  const dir = path.join(await temporary(t), 'data');
  const limits = { perMinute: 60, perDay: 1_000 };
  await withStore(dir, async ({ engine: { store, limiter } }) => {
    for (let slot = 0; slot <= MAX_RECORD_KEYS; ) {
      const some = Array.from({ length: Math.min(1_000, MAX_RECORD_KEYS + 1 - slot) }, () => aKey(slot++));
      await Promise.all(some.map((key) => store.write(() => ({ op: 'setKey', key }))));
    }
    for (let slot = 0; slot <= MAX_RECORD_KEYS; slot++) limiter.take({ slot, ...limits });
  });
  const records = changesIn(dir, 'usage').map(({ entries }) => entries.length);
  assert.deepEqual(records.slice(0, 2), [MAX_RECORD_KEYS, 1]);
});

test('a batch of an import ends with 250 animals, or with the one that fills 16,384 characters', async (t) => {
  const { at, done } = await workplace(t);
  const sizes = async (name: string, count: number) => {
    writeFileSync(at('in'), `{"name":"${name}","categoryId":1}\n`.repeat(count));
    await done(`import in --data ${name.length}`);
    assert.deepEqual(
      readdirSync(at(String(name.length))).filter((one) => one.endsWith('.jsonl')),
      [FILE],
    );
    return changesIn(at(String(name.length)), 'pets').map(({ names }) => names.length);
  };
  assert.deepEqual(await sizes('x', MAX_BATCH_ANIMALS + 1), [MAX_BATCH_ANIMALS, 1]);
  const longName = 'x'.repeat(255);
  const length = (id: number) => `,{"id":${id},"name":"${longName}","categoryId":1,"status":"available"}`.length;
  let [fitting, chars] = [0, -1]; // the first has no comma
  while (chars < MAX_BATCH_CHARS) chars += length(++fitting);
  assert.deepEqual(await sizes(longName, fitting + 1), [fitting, 1]);
});
