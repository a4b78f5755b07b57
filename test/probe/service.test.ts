/** `petstore probe service`: a petstore behind a gateway that changes nothing, and behind one that breaks each promise. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { probeService } from '../../src/probe/probe.ts';
import { startNginx, withoutNginx } from '../nginx.ts';
import { workplace } from '../operator/workplace.ts';
import { program } from '../program.ts';
import { serviceFor } from '../service.ts';
import { gatewayFor, SAMPLE, whyNot } from './gateways.ts';
import { type Fault, proxyFor } from './proxy.ts';

const SEED = fileURLToPath(new URL('../../data/seed.json', import.meta.url));
const nameOf = (line: string) => line.split(':')[0].toLowerCase();
const without = (name: string): Fault => ({ replyHead: (lines) => lines.filter((line) => nameOf(line) !== name) });
const otherStatus = (from: string, to: string): Fault => ({
  replyHead: ([line, ...lines]) => [line.replace(from, to), ...lines],
});

const idOf = (name: string) => name.split(',')[0];
/** By the case that breaks, and which half of it. */
const FAULTS: Record<string, Fault> = {
  tokens: { copies: 2 },
  'errors-json, the status': otherStatus(' 431 ', ' 400 '),
  'errors-json': { replyBody: (bytes) => bytes.replace('"status":41', '"status":51') },
  'errors-json, one of its own for 404': { replyBody: (bytes) => bytes.replace('"status":404', '"page":404') },
  replay: without('idempotent-replayed'),
  'replay, its place': without('location'),
  int64: { replyBody: (bytes) => bytes.replaceAll('9007199254740993', '9007199254740992') },
  paging: { replyHead: (lines) => lines.map((line) => line.replace('</v1', '<http://10.0.0.1/v1')) },
  deprecation: without('deprecation'),
  'deprecation, the day': { replyHead: (lines) => lines.map((line) => line.replace(/^sunset: .*/i, 'Sunset: soon')) },
  conditional: { head: (lines) => lines.filter((line) => nameOf(line) !== 'if-none-match') },
  'conditional, with If-Match': { head: (lines) => lines.filter((line) => nameOf(line) !== 'if-match') },
  'request-id': { replyHead: (lines) => lines.map((line) => line.replace(/^x-request-id: .*/i, 'X-Request-Id: 1')) },
  'limit-429': otherStatus(' 429 ', ' 503 '),
};

test('behind a gateway that changes nothing all is the same; behind one that breaks a promise that is told', async (t) => {
  const place = await workplace(t);
  const server = await place.serve(`--seed ${SEED}`);
  const direct = server.url;
  const port = Number(new URL(direct).port);
  const keyOf = async () => (await place.json<{ key: string }>('keys create --plan free')).key;
  const probe = async (fault: Fault, ...words: string[]) => {
    const through = await proxyFor(t, port, fault);
    const ran = await program(['probe', 'service', direct, '--through', through, '--key', await keyOf(), ...words]);
    return { ...ran, through };
  };
  const good = await probe({}, '--json');
  assert.equal(good.exit, 0, good.stdout + good.stderr);
  assert.match(
    good.stderr,
    /^This uses up the minute of the key \(59 requests\), and makes up to 4 animals called "probe"\.\n$/,
  );
  const { through, at, cases } = JSON.parse(good.stdout);
  assert.deepEqual([through, Number.isNaN(Date.parse(at))], [good.through, false]);
  assert.deepEqual(
    cases.map(({ id, verdict, why }: { id: string; verdict: string; why: string }) => [id, verdict, why]),
    [...new Set(Object.keys(FAULTS).map(idOf))].map((id) => [id, 'same', '']),
  );
  const tried = Object.entries(FAULTS).map(async ([name, fault]) => {
    const id = idOf(name);
    const { exit, stdout, stderr } = await probe(fault, '--json');
    assert.equal(exit, 1, `${name}: ${stdout}${stderr}`);
    const found = JSON.parse(stdout).cases.find((one: { id: string }) => one.id === id);
    assert.equal(found.verdict, 'breaks', `${name}: ${stdout}`);
  });
  await Promise.all(tried);
});

test('a minute that ends while tokens are counted is no gateway’s fault', async (t) => {
  const { clock, makeKey, url, port } = await serviceFor(t);
  const { text: key } = await makeKey('pro');
  let heads = 0;
  const through = await proxyFor(t, port, {
    head: (lines) => {
      if (++heads === 2) clock.advance(1_000);
      return lines;
    },
  });
  const late = async () => clock.advance(59_000);
  const run = await probeService({ direct: url, through, key }, late, () => {});
  const { id, verdict, why } = run.cases[0];
  assert.deepEqual([id, verdict, why], ['tokens', 'same', '']);
});

test('behind a gateway that serves a prefix, Link and Location must lead there', async (t) => {
  const { makeKey, url, port } = await serviceFor(t, { categories: 'open' });
  const only = ([line, ...lines]: string[]) => {
    return [line.includes(' /shop/v1/') ? line.replace('/shop/', '/') : line.replace('/v1/', '/v1/nowhere/'), ...lines];
  };
  let origin = '';
  const judged = async (replyHead: Fault['replyHead']) => {
    const through = `${await proxyFor(t, port, { head: only, replyHead })}/shop`;
    origin = new URL(through).origin;
    const { text: key } = await makeKey('free');
    const { cases } = await probeService(
      { direct: url, through, key },
      async () => {},
      () => {},
    );
    return cases.filter(({ verdict }) => verdict !== 'same').map(({ id, why }) => `${id}: ${why}`);
  };
  await judged(undefined); // from now on there are animals for a second page
  const rewritten = (before: () => string) => (lines: string[]) =>
    lines.map((line) => line.replace(/^(Link: <|Location: )\/v1/i, `$1${before()}/shop/v1`));
  assert.deepEqual(await judged(rewritten(() => '')), []);
  assert.deepEqual(await judged(rewritten(() => origin)), []);
  const told = await judged(undefined);
  assert.deepEqual(
    told.map((text) => text.replace(/\d+$/, 'N')),
    ['replay: Location is /v1/pets/N', 'paging: Link leads to /v1/pets?limit=1&after=N'],
  );
});

test('a gateway so slow that a minute ends before it has passed as many requests breaks nothing', async (t) => {
  const { clock, makeKey, url, port } = await serviceFor(t);
  const { text: key } = await makeKey('pro');
  const head = (lines: string[]) => {
    clock.advance(300);
    return lines;
  };
  const through = await proxyFor(t, port, { head });
  const run = await probeService(
    { direct: url, through, key },
    async () => {},
    () => {},
  );
  const { id, verdict, why } = run.cases.at(-1)!;
  assert.deepEqual([id, verdict, why], ['limit-429', 'same', '']);
});

test('a key is refused for what it lacks: its minute, its day, or a plan that is large enough', async (t) => {
  const { clock, makeKey, url, fetch } = await serviceFor(t);
  const refused = async (perMinute: number, perDay: number, used = 0, laterMs = 0) => {
    const { text: key } = await makeKey('enterprise', { perMinute, perDay });
    for (let n = 0; n < used; n++) await fetch('/v1/pets', { key });
    clock.advance(laterMs);
    const run = probeService({ direct: url, through: url, key }, assert.fail, () => {});
    const { message } = await run.then(
      () => assert.fail('not refused'),
      (error: Error) => error,
    );
    return message;
  };
  const needs = (most: number, per: string, count: number) =>
    `this key has ${most} requests a ${per}, and ${count} are needed: give one of another plan, such as free`;
  assert.equal(await refused(40, 1_000), needs(40, 'minute', 41));
  assert.equal(await refused(60, 59), needs(59, 'day', 60));
  const lacks = (left: number, count: number, seconds: number) =>
    `this key has ${left} requests left, and ${count} are needed: try again in ${seconds} s`;
  assert.equal(await refused(60, 1_000, 20), lacks(39, 40, 60));
  assert.equal(await refused(60, 61, 30, 60_000), lacks(30, 59, 86_340));
  assert.match(await refused(60, 60, 60, 60_000), /refuses the key: the limit of 60 requests a day is used up/);
});

test('a key that would cost too much, that is used up or unknown, and no petstore: one sentence each', async (t) => {
  const place = await workplace(t);
  const server = await place.serve(`--seed ${SEED}`);
  const run = async (key: string, direct = server.url, through = direct) => {
    const { exit, stdout, stderr } = await program(['probe', 'service', direct, '--through', through, '--key', key]);
    assert.equal(stdout, '');
    return `${exit} ${stderr}`;
  };
  const keyOf = async (plan: string) => (await place.json<{ key: string }>(`keys create --plan ${plan}`)).key;
  const rich = await keyOf('enterprise --per-minute 5000 --per-day 90000');
  assert.match(await run(rich), /^1 this key has 5000 requests a minute to use up: give one of a small plan/);
  assert.match(await run('ps_live_none'), /^1 .* refuses the key: /);
  const free = await keyOf('free');
  assert.match(
    await run(free, server.url, 'http://127.0.0.1:1'),
    /\n?cannot reach http:\/\/127\.0\.0\.1:1: connection refused\n$/,
  );
  for (let n = 0; n < 30; n++) await fetch(`${server.url}/pets`, { headers: { authorization: `Bearer ${free}` } });
  assert.match(await run(free), /^1 this key has \d+ requests left, and \d+ are needed: try again in \d+ s\n$/);
});

for (const [name, start, skip] of [
  ['nginx.conf', async (t: TestContext, port: number) => (await startNginx(t, `127.0.0.1:${port}`)).url, withoutNginx],
  [
    'haproxy.cfg',
    async (t: TestContext, port: number) => (await gatewayFor(t, SAMPLE, port)).replace('http:', 'https:'),
    whyNot('haproxy'),
  ],
] as const) {
  test(`behind docs/${name} a petstore keeps all that it promises`, { skip }, async (t) => {
    const place = await workplace(t);
    const server = await place.serve(`--seed ${SEED} --trust-proxy 1`);
    const url = await start(t, Number(new URL(server.url).port));
    const { key } = await place.json<{ key: string }>('keys create --plan free');
    const { exit, stdout, stderr } = await program(['probe', 'service', server.url, '--through', url, '--key', key]);
    assert.equal(exit, 0, stdout + stderr);
    assert.match(stdout, /^9 cases: 9 same, 0 allowed, 0 break$/m);
  });
}
