/** Keys: what each command does, what it prints, and from when on that holds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Callers, isRefusal } from '../../src/access/callers.ts';
import { count, isoTime } from '../../src/digits.ts';
import { read } from '../../src/operator/arguments.ts';
import type { Context } from '../../src/operator/command.ts';
import { openReadOnly } from '../../src/operator/file-engine.ts';
import type { KeyDetails } from '../../src/operator/key-details.ts';
import { createFirstKey, KEY_COMMANDS } from '../../src/operator/keys.ts';
import type { RecordedLimiter } from '../../src/operator/usage.ts';
import { readStore } from '../../src/store/file/tools.ts';
import { StoreError } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';
import { type Serving, temporary } from '../program.ts';
import { NOW, withStore, workplace } from './workplace.ts';

type NewSecret = KeyDetails & { key: string };

const status = async (server: Serving, key: string, address = '/pets') =>
  (await fetch(server.url + address, { headers: { authorization: `Bearer ${key}` } })).status;

test('the life of a key, through a running server, for its environment', async (t) => {
  const { run, done, json, serve } = await workplace(t);
  await serve('--environment staging');
  const made = await done('keys create --plan enterprise --per-minute 7 --per-day 70 --name Ünï');
  assert.match(made, /^id +k1\n[\s\S]*\nplan +enterprise\n[\s\S]*\nrevoked at +none\n.*\nps_test_[0-9A-Za-z]{36}\n$/);
  const second = await json<NewSecret>('keys create --plan free --environment production');
  assert.match(`${second.id} ${second.key}`, /^k2 ps_live_[0-9A-Za-z]{36}$/);
  const listed = await done('keys list');
  assert.match(listed, /^ID +NAME +PLAN +USED OF MINUTE +USED OF DAY +ENVIRONMENT .* STATE\n/);
  assert.match(listed, /\nk1 +Ünï +enterprise +0\/7 +0\/70 +staging .* active\n/);
  assert.match(listed, /\nk2 +unnamed +free +0\/60 +0\/1,000 +production .* active\n$/);
  const shown = await json<KeyDetails>('keys show k1');
  assert.deepEqual([shown.minute, shown.graceEndsAt], [{ limit: 7, remaining: 7, resetsAt: null }, []]);
  assert.match(await done('keys show k1'), /^minute +limit 7, remaining 7, full\nday +limit 70, remaining 70, full$/m);
  const planned = await json<KeyDetails>('keys plan k1 business');
  assert.deepEqual([planned.plan, planned.perMinute, planned.perDay], ['business', 1_000, 100_000]);
  const rotated = await json<NewSecret>('keys rotate k1 --grace 15m');
  assert.match(`${rotated.id} ${rotated.key}`, /^k1 ps_test_/);
  assert.equal((await json<KeyDetails>('keys lift k1')).graceEndsAt.length, 1);
  assert.match(await done('keys revoke k1'), /^id +k1\n[\s\S]*^revoked at +\d{4}-/m);
  const { revokedAt, remaining, graceEndsAt } = await json<KeyDetails>('keys show k1');
  assert.deepEqual([typeof revokedAt, remaining, graceEndsAt], ['string', 0, []]);
  for (const [line, said] of [
    ['keys revoke k1', 'k1 is revoked\n'],
    ['keys show k3', 'there is no key k3\n'],
  ]) {
    const { exit, stdout, stderr } = await run(line);
    assert.deepEqual([exit, stdout, stderr], [1, '', said]);
  }
});

test('what a command did to a key is in force when it returns, also for a request that is still being sent', async (t) => {
  const { done, json, serve } = await workplace(t);
  const server = await serve('--first-key pro');
  const later = await json<NewSecret>('keys rotate k1');
  assert.deepEqual([await status(server, server.key), await status(server, later.key)], [200, 200]);
  const late = connect(Number(new URL(server.url).port), '127.0.0.1');
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${later.key}\r\n`;
  late.write(`${head}Content-Type: application/json\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n`);
  assert.match(String((await once(late, 'data'))[0]), / 100 Continue/);
  const last = await json<NewSecret>('keys rotate k1 --grace 0s');
  late.write('{"name":"late","categoryId":1}');
  const reply = await text(late);
  assert.match(reply, /^HTTP\/1\.1 401 [\s\S]*"code":"invalid_api_key"/);
  assert.match(reply, /X-RateLimit-Limit: 300\r\nX-RateLimit-Remaining: 297\r\n/i);
  assert.match(reply, /WWW-Authenticate: Bearer realm="petstore", error="invalid_token"\r\n/i);
  assert.equal(await done('export'), '', 'nothing was written');
  const statuses = () => Promise.all([server.key, later.key, last.key].map((key) => status(server, key)));
  assert.deepEqual(await statuses(), [401, 401, 200], 'no grace ends all older secrets');
  await done('keys revoke k1');
  assert.deepEqual(await statuses(), [401, 401, 401]);
});

test('a secret is printed once by the command that makes it, and appears nowhere else', async (t) => {
  const { at: place, json, run, serve } = await workplace(t);
  const server = await serve('--first-key free --access-log');
  const { key } = await json<NewSecret>('keys create --plan free');
  await status(server, server.key, `/pets?api_key=${key}`);
  await status(server, `${key.slice(0, -1)}!`);
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = '{"name":"told in confidence","categoryId":1}';
  await fetch(`${server.url}/pets`, { method: 'POST', headers, body });
  const told = [];
  for (const line of ['list', 'list --json', 'show k2', 'revoke k2']) told.push(await run(`keys ${line}`));
  assert.equal((await stat(place('data'))).mode & 0o777, 0o700);
  assert.equal((await stat(place('data/admin.sock'))).mode & 0o777, 0o600);
  const { stdout, stderr } = await server.stop();
  assert.equal(stdout.match(/ps_live_[0-9A-Za-z]{36}/g)!.length, 2, 'the first key: alone, and in the line to paste');
  assert.doesNotMatch(stderr + JSON.stringify(told), /ps_(live|test)_[0-9A-Za-z]|told in confidence/);
  const commands = stderr.match(/(?<="level":"info","message":"operator",).*(?=\})/g);
  assert.deepEqual(commands, ['"call":"keys create","id":"k2"', '"call":"keys revoke","id":"k2"'], 'not what reads');
  assert.match(stderr, /"target":"\/v1\/pets\?api_key=ps_live_\[hidden\]"/);
});

/** What is waited for might never be written. */
const options = { timeout: 60_000 };
const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;
const at = (moment: number) => new Date(moment).toISOString();

/** What `keys …` does where the store is. */
async function call(context: Context, line: string): Promise<Record<string, unknown>> {
  const told: string[] = [];
  const io = { input: (async function* () {})(), tell: async (line: string) => void told.push(line) };
  const [name, ...words] = line.split(' ');
  const command = KEY_COMMANDS.find((one) => one.name === `keys ${name}`)!;
  const result = await command.call!(context, read(command, words, {}), io);
  return (result ?? { listed: JSON.parse(told.join('\n')) }) as Record<string, unknown>;
}

test('what is used and a ban are shown; they outlive an end and a kill; a lift holds at once', options, async (t) => {
  const data = await temporary(t);
  const onDisk = async () => (await readStore(data)).state.usage.get('k1')!;
  const take = ({ engine }: Context) => engine.limiter.take(engine.store.read.keys.get('k1')!);
  const show = async (context: Context) => {
    const { remaining, day, strikes, bannedUntil, bans } = await call(context, 'show k1');
    return { remaining, day, strikes, bannedUntil, bans };
  };
  const used = { remaining: 1, day: { limit: 10, remaining: 9, resetsAt: at(NOW + 24 * HOUR) }, strikes: 0 };
  const banned = { ...used, remaining: 0, bannedUntil: at(NOW + 120_000), bans: 1 };
  await withStore(data, async (context) => {
    await call(context, 'create --plan enterprise --per-minute 1 --per-day 10');
    await take(context);
  });
  const ban = async (context: Context) => {
    assert.deepEqual(await show(context), { ...used, bannedUntil: null, bans: 0 }, 'a minute begins anew, not a day');
    for (let i = 0; i < 3; i++) await take(context);
    banned.day.remaining = 8;
    assert.deepEqual(await show(context), banned);
    assert.deepEqual(await call(context, 'list --json'), { listed: [await call(context, 'show k1')] });
    while ((await onDisk()).banEndsAt === 0) await wait(20); // it is written once a second
  };
  await withStore(data, ban, { banAfter: 2 });
  const warned: string[] = [];
  const log = { info() {}, warn: (text: string) => void warned.push(text), error() {} };
  const lift = async (context: Context) => {
    assert.deepEqual(await show(context), banned);
    const { store } = context.engine;
    const { write } = store;
    const refuse = () => Promise.reject(new StoreError('full', 'the disk is full'));
    store.write = refuse;
    await assert.rejects(call(context, 'lift k1'), { failure: 'full' });
    assert.deepEqual(await show(context), banned, 'as it is told: nothing was changed');
    store.write = write;
    await call(context, 'lift k1');
    assert.deepEqual(await show(context), { ...used, bannedUntil: null, bans: 0 });
    assert.deepEqual(await onDisk(), { key: 'k1', dayUsed: 2, dayEndsAt: NOW + 24 * HOUR, banStep: 0, banEndsAt: 0 });
    await take(context);
    store.write = refuse;
  };
  await withStore(data, lift, { banAfter: 2, log });
  assert.deepEqual(warned, ['the last usage could not be written: the next start counts it as unused']);
});

test('time in which the service runs counts, also if nothing is written and the clock is behind at every start', async (t) => {
  const data = await temporary(t);
  const take = ({ engine }: Context) => (engine.limiter as RecordedLimiter).take(engine.store.read.keys.get('k1')!);
  await withStore(data, async (context) => {
    await call(context, 'create --plan enterprise --per-minute 1 --per-day 1');
    take(context);
  });
  const isRefusedFor = (hours: number) => async (context: Context, clock: SetClock) => {
    assert.equal(take(context).verdict, 'limited');
    clock.advance(hours * HOUR);
  };
  const behind = { wall: NOW - YEAR, banAfter: 0 };
  for (let day = 1; day <= 2; day++) await withStore(data, isRefusedFor(9), behind);
  const kill = async (context: Context, clock: SetClock) => {
    const { store } = context.engine;
    const { write } = store;
    const limiter = context.engine.limiter as RecordedLimiter;
    clock.advance(3 * HOUR);
    await limiter.record('the disk is full');
    assert.equal((await readStore(data)).state.time, NOW + 21 * HOUR, 'a kill loses an hour of it at most');
    let tries = 0;
    store.write = () => Promise.reject(new StoreError('full', `the disk is full: ${++tries}`));
    for (const wanted of [0, 1, 1]) {
      await limiter.record('the disk is full');
      assert.equal(tries, wanted);
      clock.advance(wanted === 0 ? HOUR : 60_000);
    }
    store.write = write;
  };
  const warned: string[] = [];
  const log = { info() {}, warn: (text: string) => void warned.push(text), error() {} };
  await withStore(data, kill, { ...behind, log });
  assert.equal(warned.length, 1, 'of the clock alone');
  await withStore(data, isRefusedFor(2), behind);
  const later = { clock: new SetClock(NOW + YEAR), log };
  await openReadOnly(data, later).then(({ close }) => close());
  assert.equal(warned.length, 1, 'what only reads records nothing');
  await withStore(data, async (context) => assert.equal(take(context).verdict, 'admitted'), behind);
});

test('usage that cannot be written is tried every second, and told once a minute', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const warned: string[] = [];
  const log = { info() {}, warn: (text: string) => void warned.push(text), error() {} };
  const failing = async (context: Context, clock: SetClock) => {
    await call(context, 'create --plan free');
    const { limiter, store } = context.engine;
    const { write } = store;
    let tries = 0;
    store.write = () => {
      tries++;
      return Promise.reject(new StoreError('full', 'the disk is full'));
    };
    limiter.take(store.read.keys.get('k1')!);
    for (let second = 0; second < 120; second++) {
      clock.advance(1_000);
      t.mock.timers.tick(1_000);
      await new Promise(setImmediate);
    }
    store.write = write;
    assert.deepEqual([tries, warned], [120, Array(2).fill('usage could not be written; it is tried every second')]);
  };
  await withStore(await temporary(t), failing, { log });
  assert.equal(warned.length, 2);
});

test('a record of usage beside a lift, or beside the clock and the reset of the lab, takes back nothing of it', async (t) => {
  const data = await temporary(t);
  const unused = { key: 'k1', dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };
  const beside = async (context: Context) => {
    const { engine } = context;
    await call(context, 'create --plan enterprise --per-minute 1 --per-day 10');
    const key = engine.store.read.keys.get('k1')!;
    const limiter = engine.limiter as RecordedLimiter;
    const ban = () => Array.from({ length: 2 }, () => limiter.take(key));
    for (const [work, expected] of [
      [() => limiter.lift(key), { ...unused, dayUsed: 1, dayEndsAt: NOW + 24 * HOUR }],
      [() => engine.advance(key, 25 * HOUR), unused],
      [() => engine.reset(key), unused],
    ] as const) {
      ban();
      const done = work();
      const recorded = limiter.record('the disk is not full');
      await Promise.all([done, recorded]);
      // As a crash would leave it now.
      assert.deepEqual((await readStore(data)).state.usage.get('k1'), expected, `${work}`);
    }
  };
  await withStore(data, beside, { banAfter: 1 });
});

test('an older secret ends at its own grace or at the new one, whichever is sooner; five work at a time', async (t) => {
  await withStore(await temporary(t), async (context) => {
    await call(context, 'create --plan free');
    for (const grace of ['48h', '1h', '24h']) await call(context, `rotate k1 --grace ${grace}`);
    const ends = [24, 1, 1].map((hours) => at(NOW + hours * HOUR));
    assert.deepEqual((await call(context, 'show k1')).graceEndsAt, ends);
    await call(context, 'rotate k1');
    const message = 'k1 has 5 secrets that work; --grace 0s ends them';
    await assert.rejects(call(context, 'rotate k1'), { message });
  });
});

test('no grace ends an old secret at once, also for a replica whose clock is a little behind', async (t) => {
  await withStore(await temporary(t), async (context) => {
    const { key: secret } = await call(context, 'create --plan free');
    assert.equal((await call(context, 'rotate k1 --grace 0s')).oldSecretEndsAt, at(NOW));
    const { read, unix } = context.engine.store;
    const behind = new Callers({ read, unix: () => unix.call(context.engine.store) - 999 }, 'production');
    assert.ok(isRefusal(behind.identify(`Bearer ${secret}`)));
  });
});

test('a first key is made where none lets anybody in; one that is revoked stays as it is', async (t) => {
  await withStore(await temporary(t), async (context) => {
    const firstKey = (environment: Context['environment']) =>
      createFirstKey({ ...context, environment }, 'free').then((made) => made?.key);
    assert.match((await firstKey('production'))!, /^ps_live_/);
    assert.equal(await firstKey('production'), undefined);
    assert.match((await firstKey('staging'))!, /^ps_test_/);
    await call(context, 'revoke k1');
    for (const line of ['rotate k1', 'plan k1 pro', 'revoke k1'])
      await assert.rejects(call(context, line), { message: 'k1 is revoked' });
    assert.match((await firstKey('production'))!, /^ps_live_/);
  });
});

test('a clock that is set back at a start gives an old secret no longer grace, also where no request ever came', async (t) => {
  const data = await temporary(t);
  const secret = await withStore(data, async (context) => {
    const { key } = await call(context, 'create --plan free');
    await call(context, 'rotate k1 --grace 1h');
    return key;
  });
  const later = async (context: Context, clock: SetClock) => {
    const { store } = context.engine;
    const isTaken = () => !isRefusal(new Callers(store, 'production').identify(`Bearer ${secret}`));
    const ends = at(clock.wall() + HOUR);
    assert.deepEqual([isTaken(), (await call(context, 'show k1')).graceEndsAt], [true, [ends]]);
    assert.equal((await call(context, 'rotate k1 --grace 1h')).oldSecretEndsAt, ends, 'as the machine counts');
    clock.advance(HOUR);
    assert.equal(isTaken(), false);
  };
  await withStore(data, later, { wall: NOW - YEAR });
});

test('the times and numbers of a list are those that Node itself would tell', () => {
  const day = 86_400_000;
  const random = Array.from({ length: 1_000 }, () => Math.floor((2 * Math.random() - 1) * 8.64e15));
  for (const unix of [
    0,
    1,
    999,
    1.5,
    -1,
    -1.5,
    day - 1,
    day,
    NOW,
    NOW + 59_999,
    253_402_300_800_000,
    8.64e15,
    ...random,
  ])
    assert.equal(isoTime(unix), new Date(unix).toISOString());
  for (const number of [0, 7, 999, 1_000, 1_001, 10_000, 999_999, 1_000_000, -1, -1_000, Number.MAX_SAFE_INTEGER])
    assert.equal(count(number), number.toLocaleString('en-US'));
});

test('on a machine whose clock is before 1970 or beyond 9999 all that is written can be read again', async (t) => {
  const { run, done, json } = await workplace(t);
  for (const time of ['-864e5', '0', '8e15']) {
    const NODE_OPTIONS = `--import=data:text/javascript,Date.now=()=>${time}`;
    const at = async (line: string) => {
      const { exit, stderr } = await run(`${line} --data of${time}`, { env: { NODE_OPTIONS } });
      assert.equal(exit, 0, `${line}: ${stderr}`);
    };
    for (const line of ['create --plan free', 'create --plan free', 'rotate k1', 'revoke k1']) await at(`keys ${line}`);
    await done(`verify --data of${time}`);
    const keys = await json<KeyDetails[]>(`keys list --data of${time}`);
    assert.deepEqual([Boolean(keys[0].revokedAt), keys[1].revokedAt], [true, null]);
  }
});
