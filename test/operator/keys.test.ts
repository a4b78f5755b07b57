import assert from 'node:assert/strict';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type { KeyDetails } from '../../src/operator/key-details.ts';
import { program, type Serving, serving, temporary } from '../program.ts';

type NewSecret = KeyDetails & { key: string };

const SECRET = /ps_(live|test)_[0-9A-Za-z]{36}/;

/** A running server, or none: every command must do the same. */
async function keysIn(t: TestContext, args?: string[]) {
  const data = path.join(await temporary(t), 'data');
  const server = args && (await serving(t, ['--data', data, '--access-log', ...args]));
  const run = (line: string) => program(['keys', ...line.split(' '), '--data', data]);
  const json = async <T>(line: string): Promise<T> => {
    const ran = await run(`${line} --json`);
    assert.equal(ran.exit, 0, ran.stderr);
    return JSON.parse(ran.stdout);
  };
  return { data, server: server as Serving, run, json };
}

const status = async (server: Serving, key: string, address = '/pets') =>
  (await fetch(server.url + address, { headers: { authorization: `Bearer ${key}` } })).status;

for (const [how, args] of [
  ['through the running server', []],
  ['on the store itself', undefined],
] as const) {
  test(`the life of a key, ${how}`, async (t) => {
    const { run, json } = await keysIn(t, args && [...args]);
    const made = await run('create --plan enterprise --per-minute 7 --per-day 70 --name Ünï');
    assert.equal(made.exit, 0, made.stderr);
    const lines = made.stdout.trimEnd().split('\n');
    assert.match(lines.at(-1)!, /^ps_live_[0-9A-Za-z]{36}$/);
    assert.match(made.stdout, /^id +k1\n[\s\S]*\nplan +enterprise\n/);

    const second = await json<NewSecret>('create --plan free --environment staging');
    assert.equal(second.id, 'k2');
    assert.match(second.key, /^ps_test_/);
    const listed = (await json<KeyDetails[]>('list')).map(({ id, name, plan, perMinute, perDay, environment }) => {
      return [id, name, plan, perMinute, perDay, environment];
    });
    const expected = ['k1', 'Ünï', 'enterprise', 7, 70, 'production'];
    assert.deepEqual(listed, [expected, ['k2', 'unnamed', 'free', 60, 1_000, 'staging']]);
    assert.match(
      (await run('list')).stdout,
      /^ID +NAME +PLAN +USED OF MINUTE +USED OF DAY [\s\S]*\nk1 +Ünï +enterprise +0\/7 +0\/70 /,
    );

    const shown = await json<KeyDetails>('show k1');
    assert.deepEqual(shown.minute, { limit: 7, remaining: 7, resetsAt: null });
    assert.deepEqual([shown.strikes, shown.bannedUntil, shown.bans, shown.graceEndsAt], [0, null, 0, []]);

    const planned = await json<KeyDetails>('plan k1 business');
    assert.deepEqual([planned.plan, planned.perMinute, planned.perDay], ['business', 1_000, 100_000]);
    const rotated = await json<NewSecret>('rotate k1 --grace 15m');
    assert.equal(rotated.id, 'k1');
    assert.match(rotated.key, /^ps_live_/);
    const [graceEndsAt] = (await json<KeyDetails>('show k1')).graceEndsAt;
    const minutes = (Date.parse(graceEndsAt) - Date.now()) / 60_000;
    assert.ok(minutes > 14 && minutes <= 15, graceEndsAt);

    assert.equal((await run('lift k1')).exit, 0);
    assert.match((await run('revoke k1')).stdout, /^id +k1\n[\s\S]*^revoked at +\d{4}-/m);
    assert.notEqual((await json<KeyDetails[]>('list'))[0].revokedAt, null);
    const { remaining, strikes, bannedUntil, graceEndsAt: ends } = await json<KeyDetails>('show k1');
    assert.deepEqual([remaining, strikes, bannedUntil, ends], [0, 0, null, []]);
    for (const line of ['revoke k1', 'rotate k1', 'plan k1 pro', 'show k3', 'revoke k3']) {
      const ran = await run(line);
      assert.equal(ran.exit, 1, line);
      assert.equal(ran.stdout, '', line);
      assert.match(ran.stderr, /^(k1 is revoked|there is no key k3)\n$/);
    }
    assert.equal((await json<NewSecret>('create --plan free')).id, 'k3');
  });
}

test('a revoked key is refused once the command returns; a rotated one works until its grace ends', async (t) => {
  const { server, json, run } = await keysIn(t, ['--first-key', 'pro']);
  assert.equal(await status(server, server.key), 200);
  const later = await json<NewSecret>('rotate k1');
  assert.equal(await status(server, server.key), 200);
  assert.equal(await status(server, later.key), 200);
  const last = await json<NewSecret>('rotate k1 --grace 0s');
  assert.deepEqual(
    await Promise.all([server.key, later.key, last.key].map((key) => status(server, key))),
    [401, 401, 200],
    'no grace ends all older secrets',
  );
  await run('revoke k1');
  assert.equal(await status(server, last.key), 401);
});

test('an older secret ends at its own grace or at the new one, whichever is sooner; five work at a time', async (t) => {
  const { json, run } = await keysIn(t);
  await json('create --plan free');
  const hoursLeft = async () => {
    const { graceEndsAt } = await json<KeyDetails>('show k1');
    return graceEndsAt.map((end) => Math.round((Date.parse(end) - Date.now()) / 3_600_000));
  };
  for (const grace of ['48h', '1h', '24h']) await json(`rotate k1 --grace ${grace}`);
  assert.deepEqual(await hoursLeft(), [24, 1, 1]);
  await json('rotate k1');
  assert.match((await run('rotate k1')).stderr, /^k1 has 5 secrets that work/);
});

test('a first key is made where none lets anybody in; a new key is for the environment of the server', async (t) => {
  const { data, server, run } = await keysIn(t, ['--first-key', 'free']);
  await run('revoke k1');
  await server.stop();
  const again = await serving(t, ['--data', data, '--first-key', 'free']);
  assert.equal(await status(again, again.key), 200);
  await again.stop();
  const staging = ['--data', data, '--first-key', 'free', '--environment', 'staging'];
  const other = await serving(t, staging);
  const made = JSON.parse((await run('create --plan free --json')).stdout);
  for (const key of [other.key, made.key])
    assert.deepEqual([key.slice(0, 8), await status(other, key)], ['ps_test_', 200]);
  await other.stop();
  assert.equal((await serving(t, staging)).key, '');
});
for (const [line, expected] of [
  ['revoke k1', 401],
  ['rotate k1 --grace 1h', 201],
  ['rotate k1 --grace 0s', 401],
] as const) {
  test(`a request that is still being sent when the key meets ${line} gets ${expected}`, async (t) => {
    const { data, server, run } = await keysIn(t, ['--first-key', 'pro']);
    const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', 'content-length': 30 };
    const wanted = { method: 'POST', headers: { ...headers, expect: '100-continue' } };
    const request = http.request(`${server.url}/pets`, wanted);
    request.flushHeaders();
    await once(request, 'continue');
    request.write('{"name":"late",');
    assert.equal((await run(line)).exit, 0);
    request.end('"categoryId":1}');
    const [reply] = (await once(request, 'response')) as [http.IncomingMessage];
    let text = '';
    for await (const chunk of reply) text += chunk;
    assert.equal(reply.statusCode, expected, text);
    assert.deepEqual([reply.headers['x-ratelimit-limit'], reply.headers['x-ratelimit-remaining']], ['300', '299']);
    if (expected === 201) return;
    assert.equal(JSON.parse(text).code, 'invalid_api_key');
    assert.equal(reply.headers['www-authenticate'], 'Bearer realm="petstore", error="invalid_token"');
    assert.equal((await program(['export', '--data', data])).stdout, '', 'nothing was written');
  });
}

test('show tells what is used, spends nothing, and a restart keeps the day', async (t) => {
  const { data, server, json } = await keysIn(t, ['--first-key', 'free']);
  for (let i = 0; i < 3; i++) await status(server, server.key);
  const first = await json<KeyDetails>('show k1');
  const again = await json<KeyDetails>('show k1');
  assert.deepEqual([first.minute.remaining, first.day.remaining], [57, 997]);
  assert.deepEqual(await json<KeyDetails[]>('list'), [first], 'the list tells the same');
  assert.deepEqual([again.minute.remaining, again.day.remaining], [57, 997]);
  assert.ok(Date.parse(first.day.resetsAt!) > Date.now() + 86_000_000);
  assert.equal((await server.stop()).exit, 0);
  assert.equal((await json<KeyDetails>('show k1')).day.remaining, 997);
  await serving(t, ['--data', data]);
  assert.equal((await json<KeyDetails>('show k1')).day.remaining, 997);
});

test('a ban is shown, outlives a kill, and is lifted at once', async (t) => {
  const { data, json, run, server } = await keysIn(t, ['--ban-after', '2']);
  const made = await json<NewSecret>('create --plan enterprise --per-minute 1 --per-day 10');
  const replies = [];
  for (let i = 0; i < 4; i++) replies.push(await status(server, made.key));
  assert.deepEqual(replies, [200, 429, 429, 429]);
  const shown = await json<KeyDetails>('show k1');
  const seconds = (Date.parse(shown.bannedUntil!) - Date.now()) / 1_000;
  assert.ok(seconds > 100 && seconds <= 121, String(seconds));
  assert.deepEqual([shown.bans, shown.remaining, shown.day.remaining], [1, 0, 9]);
  const banned = await fetch(`${server.url}/pets`, { headers: { authorization: `Bearer ${made.key}` } });
  const told = ['remaining', 'reset'].map((name) => Number(banned.headers.get(`x-ratelimit-${name}`)));
  assert.deepEqual(told, [shown.remaining, Date.parse(shown.bannedUntil!) / 1_000], 'what HTTP tells');
  assert.match((await run('list')).stdout, /banned until \d{4}-/);
  await new Promise((resolve) => setTimeout(resolve, 1_500)); // usage is written once a second
  await server.kill();
  assert.equal((await json<KeyDetails>('show k1')).bannedUntil !== null, true);
  const next = await serving(t, ['--data', data, '--ban-after', '2']);
  assert.equal(await status(next, made.key), 429);
  assert.equal((await run('lift k1')).exit, 0);
  assert.equal((await json<KeyDetails>('show k1')).bannedUntil, null);
  assert.equal(await status(next, made.key), 200);
  await next.kill();
  assert.equal((await json<KeyDetails>('show k1')).bannedUntil, null, 'lifting is on disk when the command returns');
});

test('a secret is printed once by the command that makes it, and appears nowhere else', async (t) => {
  const { data, json, run, server } = await keysIn(t, ['--first-key', 'free']);
  const { key } = await json<NewSecret>('create --plan free');
  await status(server, key);
  await status(server, server.key, `/pets?api_key=${key}`);
  await status(server, `${key.slice(0, -1)}!`);
  await fetch(`${server.url}/pets`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{"name":"told in confidence","categoryId":1}',
  });
  const told = [await run('list'), await run('show k2'), await run('revoke k2'), await run('list --json')];
  assert.equal((await stat(data)).mode & 0o777, 0o700);
  assert.equal((await stat(path.join(data, 'admin.sock'))).mode & 0o777, 0o600);
  const ended = await server.stop();
  assert.equal(
    ended.stdout.match(new RegExp(SECRET, 'g'))!.length,
    2,
    'the first key: alone, and in the line to paste',
  );
  for (const text of [ended.stderr, ...told.flatMap(({ stdout, stderr }) => [stdout, stderr])]) {
    assert.doesNotMatch(text, /ps_(live|test)_[0-9A-Za-z]/);
    assert.doesNotMatch(text, /told in confidence/);
  }
  assert.match(ended.stderr, /"target":"\/v1\/pets\?api_key=ps_live_\[hidden\]"/);
});
