/** Keys: what each command does, what it prints, and from when on that holds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import { type Context, commandsWith } from '../../src/operator/commands.ts';
import { createFirstKey, createKey, rotateKey } from '../../src/operator/keys.ts';
import { perform, prepare } from '../../src/operator/options.ts';
import { StoreError } from '../../src/store/model.ts';
import { type Serving, temporary } from '../program.ts';
import { until } from '../until.ts';
import { NOW, withStore, workplace } from './workplace.ts';

interface KeyDetails {
  id: string;
  plan: string;
  perMinute: number;
  perDay: number;
  revokedAt: string | null;
  minute: object;
  graceEndsAt: string[];
}
type NewKey = KeyDetails & { key: string };

const status = async (server: Serving, key: string, address = '/pets') =>
  (await fetch(server.url + address, { headers: { authorization: `Bearer ${key}` } })).status;

test('the life of a key, through a running server, for its environment', async (t) => {
  const { run, done, json, serve } = await workplace(t);
  await serve('--environment staging');
  assert.match(await done('keys list'), /^There are no keys. See node \S+ keys create --help\n$/);
  assert.deepEqual(await json('keys list'), []);
  const made = await done('keys create --plan enterprise --per-minute 7 --per-day 70 --name Ünï');
  assert.match(
    made,
    /^id +k1\n[\s\S]*\nplan +enterprise\n[\s\S]*\nrevoked at +none\n[\s\S]*once:\nps_test_[0-9A-Za-z]{36}\n$/,
  );
  const second = await json<NewKey>('keys create --plan free --environment production');
  assert.match(`${second.id} ${second.plan} ${second.key}`, /^k2 free ps_live_[0-9A-Za-z]{36}$/);
  const listed = await done('keys list');
  assert.match(listed, /^ID +NAME +PLAN +USED OF MINUTE +USED OF DAY +ENVIRONMENT .* STATE\n/);
  assert.match(listed, /\nk1 +Ünï +enterprise +0\/7 +0\/70 +staging .* active\n/);
  assert.match(listed, /\nk2 +unnamed +free +0\/60 +0\/1,000 +production .* active\n$/);
  const [shown] = await json<KeyDetails[]>('keys list');
  assert.deepEqual([shown.minute, shown.graceEndsAt], [{ limit: 7, remaining: 7, resetsAt: null }, []]);
  const planned = await json<KeyDetails>('keys plan k1 business');
  assert.deepEqual([planned.plan, planned.perMinute, planned.perDay], ['business', 1_000, 100_000]);
  const rotated = await json<NewKey>('keys rotate k1 --grace 15m');
  assert.match(`${rotated.id} ${rotated.key}`, /^k1 ps_test_/);
  assert.equal((await json<KeyDetails>('keys lift k1')).graceEndsAt.length, 1);
  assert.match(await done('keys revoke k1'), /^id +k1\n[\s\S]*^revoked at +\d{4}-/m);
  const [{ revokedAt, graceEndsAt }] = await json<KeyDetails[]>('keys list');
  assert.deepEqual([typeof revokedAt, graceEndsAt], ['string', []]);
  for (const [line, reason] of [
    ['keys revoke k1', 'k1 is revoked\n'],
    ['keys lift k3', 'there is no key k3\n'],
  ]) {
    const { exit, stdout, stderr } = await run(line);
    assert.deepEqual([exit, stdout, stderr], [1, '', reason]);
  }
});

test('the same commands without a running server', async (t) => {
  const { at, done, json, run, serve } = await workplace(t);
  const none = await run('keys list');
  assert.deepEqual(
    [none.exit, none.stderr],
    [1, `there is no store in ${at('data')}: name its directory with --data\n`],
  );
  const { key } = await json<NewKey>('keys create --plan free');
  assert.match(key, /^ps_live_/);
  await done('keys create --plan pro --environment staging');
  await done('keys revoke k2');
  const rotated = await json<NewKey>('keys rotate k1 --grace 0s');
  assert.match(await done('keys list'), /\nk1 .* active\nk2 .* revoked \d{4}-[^\n]*\n$/);
  const server = await serve();
  assert.deepEqual([await status(server, key), await status(server, rotated.key)], [401, 200]);
});

test('what a command did to a key holds when it returns, also for a request that is still being sent', async (t) => {
  const { done, json, serve } = await workplace(t);
  const server = await serve('--first-key pro');
  const later = await json<NewKey>('keys rotate k1');
  assert.deepEqual([await status(server, server.key), await status(server, later.key)], [200, 200]);
  const late = connect(Number(new URL(server.url).port), '127.0.0.1');
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${later.key}\r\n`;
  late.write(`${head}Content-Type: application/json\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n`);
  assert.match(String((await once(late, 'data'))[0]), / 100 Continue/);
  const last = await json<NewKey>('keys rotate k1 --grace 0s');
  late.write('{"name":"late","categoryId":1}');
  assert.match(await text(late), /^HTTP\/1\.1 401 [\s\S]*"code":"invalid_api_key"/);
  assert.equal(await done('export'), '', 'nothing was written');
  const statuses = () => Promise.all([server.key, later.key, last.key].map((key) => status(server, key)));
  assert.deepEqual(await statuses(), [401, 401, 200], 'no grace ends all older secrets');
  await done('keys revoke k1');
  assert.deepEqual(await statuses(), [401, 401, 401]);
});

test('a secret is printed once by the command that makes it, and appears nowhere else', async (t) => {
  const { at: place, json, run, serve } = await workplace(t);
  const server = await serve('--first-key free --access-log');
  const { key } = await json<NewKey>('keys create --plan free');
  await status(server, server.key, `/pets?api_key=${key}`);
  await status(server, `${key.slice(0, -1)}!`);
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = '{"name":"in confidence","categoryId":1}';
  await fetch(`${server.url}/pets`, { method: 'POST', headers, body });
  const printed = [];
  for (const line of ['list', 'list --json', 'show k2', 'revoke k2']) printed.push(await run(`keys ${line}`));
  assert.equal((await stat(place('data'))).mode & 0o777, 0o700);
  assert.equal((await stat(place('data/admin.sock'))).mode & 0o777, 0o600);
  const { stdout, stderr } = await server.stop();
  assert.equal(stdout.match(/ps_live_[0-9A-Za-z]{36}/g)!.length, 2, 'the first key: alone, and in the line to paste');
  assert.doesNotMatch(stderr + JSON.stringify(printed), /ps_(live|test)_[0-9A-Za-z]|in confidence/);
  const commands = stderr.match(/(?<="level":"info","message":"command",).*(?=\})/g);
  assert.deepEqual(commands, ['"command":"keys create","id":"k2"', '"command":"keys revoke","id":"k2"']);
  assert.match(stderr, /"target":"\/v1\/pets\?api_key=ps_live_\[hidden\]"/);
});

test('a key that leaked is found by its text on standard input, also one that works no longer', async (t) => {
  const { json, run, serve } = await workplace(t);
  const { key: old } = await json<NewKey>('keys create --plan free --name first');
  const { key: graced } = await json<NewKey>('keys rotate k1 --grace 0s');
  const { key: newest } = await json<NewKey>('keys rotate k1');
  const { key: revoked } = await json<NewKey>('keys create --plan pro');
  await json('keys revoke k2');
  const { key: ofStaging } = await json<NewKey>('keys create --plan pro --environment staging');
  const find = async (key: string) => {
    const { exit, stdout, stderr } = await run('keys find --json', { input: `${key}\n` });
    assert.doesNotMatch(stdout + stderr, new RegExp(key), 'no secret is repeated');
    return exit === 0 ? JSON.parse(stdout) : { exit, stderr };
  };
  for (const way of ['without a server', 'with one']) {
    const found = [];
    for (const key of [old, graced, newest, revoked]) {
      const { id, works } = await find(key);
      found.push([id, works]);
    }
    assert.deepEqual(found, [['k1', false], ['k1', true], ['k1', true], ['k2', false]], way); // biome-ignore format: one table
    const isAccepted = way === 'without a server'; // for a server of staging may start
    assert.equal((await find(ofStaging)).works, isAccepted, way);
    if (way === 'without a server') await serve();
  }
  const shown = await run('keys find', { input: newest });
  assert.match(shown.stdout, /^works +true\nid +k1\nname +first\n/);
  for (const [key, reason] of [
    [makeKey('production'), 'this key is nobody’s here\n'],
    [`${old.slice(0, -1)}${old.endsWith('x') ? 'y' : 'x'}`, 'this key was never made: its last characters'],
    ['nothing like a key', 'standard input is no key: give one alone'],
    [`${old} ${old}`, 'standard input is no key: give one alone'],
  ]) {
    const { exit, stderr } = await find(key);
    assert.deepEqual([exit, stderr.slice(0, reason.length)], [1, reason]);
  }
});

test('only the digest of a key that is looked for leaves the process', async (t) => {
  const { at, run } = await workplace(t);
  await mkdir(at('data'), { mode: 0o700 });
  let received = '';
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      received += bytes;
      if (!received.endsWith('\r\n0\r\n\r\n')) socket.write('HTTP/1.1 100 Continue\r\n\r\n');
      else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
    });
  }).listen(at('data/admin.sock'));
  t.after(() => server.close());
  await once(server, 'listening');
  const key = makeKey('production');
  assert.equal((await run('keys find', { input: key })).exit, 0);
  assert.match(received, new RegExp(`^POST /keys/find\\?digest=${digestOf(key)} [^{]*\\r\\n\\r\\n0\\r\\n\\r\\n$`));
});

test('usage and a ban are shown, and outlive a kill; a lift and a plan hold at once', async (t) => {
  const { at, run, done, json, serve } = await workplace(t);
  const server = await serve('--ban-after 2');
  const { key } = await json<NewKey>('keys create --plan enterprise --per-minute 2 --per-day 10');
  const find = async () => (await run('keys find', { input: key })).stdout;
  for (const expected of [200, 200, 429, 429, 429]) assert.equal(await status(server, key), expected);
  const banned = await find();
  assert.match(banned, /^minute +limit 2, remaining 0, resets at .*\nday +limit 10, remaining 8, /m);
  assert.match(banned, /^banned until +\d{4}-\d\d-\d\dT[\d:]{8}\.000Z\nbans +1$/m);
  assert.match(banned, /^works +true\n[\s\S]*^banned until +\d{4}-/m, 'a ban ends by itself, and is told beside it');
  await until(async () => /"usage":\[\{[^}]*"bans":1/.test(await readFile(at('data/store.jsonl'), 'utf8')));
  await server.kill();
  assert.match(await done('keys list'), /^k1 .* +\d\/2 +2\/10 .* banned until /m);
  const again = await serve('--ban-after 2');
  assert.equal(await status(again, key), 429);
  assert.match(await done('keys lift k1'), /^banned until +none\nbans +0$/m);
  await done('keys plan k1 free');
  assert.equal(await status(again, key), 200);
  assert.match(await find(), /^day +limit 1,000, remaining 997, /m);
});

const HOUR = 3_600_000;
const iso = (moment: number) => new Date(moment).toISOString();

/** What `keys …` does on an open store. */
async function work(context: Context, line: string): Promise<NewKey> {
  const [name, ...words] = line.split(' ');
  const command = commandsWith([]).find((one) => one.name === `keys ${name}`)!;
  const { texts } = prepare(command, words, {}, []);
  return (await perform(command, context, texts, [])) as NewKey;
}

test('an older secret ends at its own grace or at the new one, whichever is sooner; five work at a time', async (t) => {
  await withStore(await temporary(t), async (context, clock) => {
    await work(context, 'create --plan free');
    for (const grace of ['48h', '1h', '24h']) await work(context, `rotate k1 --grace ${grace}`);
    const ends = [24, 1, 1].map((hours) => iso(NOW + hours * HOUR));
    assert.deepEqual((await work(context, 'plan k1 pro')).graceEndsAt, ends);
    await work(context, 'rotate k1');
    const message = 'k1 has 5 secrets that work; a grace of 0s ends the older ones';
    await assert.rejects(work(context, 'rotate k1'), { message });
    clock.advance(HOUR);
    assert.equal((await work(context, 'rotate k1')).graceEndsAt[0], iso(NOW + 25 * HOUR));
  });
});

test('a new key is shown also where nobody says any more what it has used', async (t) => {
  await withStore(await temporary(t), async (context) => {
    context.engine.limiter.look = () => Promise.reject(new StoreError('unavailable', 'the database has gone'));
    const made = await createKey(context, { plan: 'free', name: 'n' });
    assert.deepEqual({ ...made, key: undefined }, { id: 'k1', name: 'n', plan: 'free', key: undefined });
    const rotated = await rotateKey(context, { id: 'k1', grace: 0 });
    const [{ digest }] = context.engine.store.read.keys.get(1)!.secrets;
    assert.equal(digestOf(rotated.key), digest);
  });
});

test('a first key is made where none lets anybody in', async (t) => {
  await withStore(await temporary(t), async (context) => {
    const firstKey = (environment: Context['environment']) =>
      createFirstKey({ ...context, environment }, 'free').then((made) => made?.key);
    assert.match((await firstKey('production'))!, /^ps_live_/);
    assert.equal(await firstKey('production'), undefined);
    assert.match((await firstKey('staging'))!, /^ps_test_/);
    await work(context, 'revoke k1');
    assert.match((await firstKey('production'))!, /^ps_live_/);
  });
});

test('many keys are listed, in one table and one JSON list', async (t) => {
  const keys = 1_200;
  const { at, done, json } = await workplace(t);
  await withStore(at('data'), (context) =>
    Promise.all(Array.from({ length: keys }, () => createKey(context, { plan: 'free', name: 'n' }))),
  );
  const listed = await json<{ id: string }[]>('keys list');
  assert.deepEqual(listed.map(({ id }) => id), Array.from({ length: keys }, (_, i) => `k${i + 1}`)); // biome-ignore format: one way
  const lines = (await done('keys list')).trimEnd().split('\n');
  assert.deepEqual([lines.length, lines.filter((line) => line.startsWith('ID')).length], [keys + 1, 1]);
});
