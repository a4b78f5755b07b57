/** Keys, whom they let in, and the gate before a limiter that promises its decisions, as a shared one does. */
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { beforeEach, it } from 'node:test';
import { crc32 } from 'node:zlib';
import { Addresses } from '../../src/access/addresses.ts';
import { Callers, type KeyRefusal, MAX_KNOWN_HEADERS } from '../../src/access/callers.ts';
import { digestOf, environmentOf, makeKey } from '../../src/access/keys.ts';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Limiter } from '../../src/access/limits.ts';
import { Gate } from '../../src/gate.ts';
import type { Reply } from '../../src/http/reply.ts';
import type { ApiKey, Environment } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

it('makes keys of the published form, which end with the CRC-32 of all before it, and keeps their SHA-256', () => {
  for (const [environment, form] of [
    ['production', /^ps_live_[0-9A-Za-z]{36}$/],
    ['staging', /^ps_test_[0-9A-Za-z]{36}$/],
  ] as const) {
    const key = makeKey(environment);
    assert.match(key, form);
    assert.equal(environmentOf(key), environment);
    const value = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + ALPHABET.indexOf(digit), 0);
    assert.equal(value, crc32(key.slice(0, -6)));
    assert.equal(digestOf(key), crypto.hash('sha256', key));
  }
  const small = 'ps_live_00000000000000000000000000000r00Rz5j';
  assert.equal(environmentOf(small), 'production', 'a small checksum has zeros');
});

it('draws all 62 characters evenly', () => {
  const KEYS = 4_000;
  const counts = new Map<string, number>();
  for (let n = 0; n < KEYS; n++) {
    for (const char of makeKey('staging').slice(8, 38)) counts.set(char, (counts.get(char) ?? 0) + 1);
  }
  const expected = (KEYS * 30) / 62;
  let chiSquare = 0;
  for (const char of ALPHABET) chiSquare += ((counts.get(char) ?? 0) - expected) ** 2 / expected;
  // 61 degrees of freedom: 130 is exceeded once in a million runs; bytes taken modulo 62 come to about 700.
  assert.ok(chiSquare < 130, `chi-square ${chiSquare}`);
});

it('catches every change of one character, and every two that changed places', () => {
  const key = makeKey('production');
  const put = (...changes: [at: number, char: string][]) =>
    environmentOf(changes.reduce((text, [at, char]) => text.slice(0, at) + char + text.slice(at + 1), key));
  for (let at = 0; at < key.length; at++) {
    for (const char of ALPHABET.replace(key[at], '')) {
      const reading = put([at, char]);
      assert.ok(at < 8 ? reading !== 'production' : reading === 'mistyped', `${char} at ${at}: ${reading}`);
    }
    for (let other = 8; other < at; other++) {
      if (key[other] !== key[at]) assert.equal(put([at, key[other]], [other, key[at]]), 'mistyped');
    }
  }
  assert.equal(environmentOf(key.replace('live', 'test')), 'mistyped', 'a key of the other environment');
});

let clock: SetClock;
let keys: Map<string, ApiKey>;
let callers: Callers;
let bans: string[];
let gate: Gate;
/** What happens elsewhere while the limiter, or the news, is waited for. */
let meanwhile: () => void;
const callersOf = (environment: Environment) =>
  new Callers({ read: { keys: { byDigest: keys } }, unix: () => clock.now() }, environment);

beforeEach(() => {
  [clock, keys, bans, meanwhile] = [new SetClock(), new Map(), [], () => {}];
  callers = callersOf('production');
  const onBan = ({ id }: ApiKey, seconds: number) => void bans.push(`${id} ${seconds}`);
  gate = new Gate({ addresses: new Addresses({ clock }), trustProxy: 0, onBan });
});

/** The key k1 with these secrets. */
function record(texts: string[], change: Partial<ApiKey> = {}): ApiKey {
  const limits = { plan: 'enterprise', perMinute: 2, perDay: 9 } as const;
  const about = { id: 'k1', slot: 0, name: '', environment: 'production', createdAt: 0, ...limits } as const;
  return { ...about, secrets: texts.map((text) => ({ digest: digestOf(text) })), ...change };
}

function set(key: ApiKey): void {
  for (const { digest } of key.secrets) keys.set(digest, key);
}

function issue(environment: Environment = 'production'): string {
  const text = makeKey(environment);
  set(record([text], { environment }));
  return text;
}

/** `let in`, or the code and the message of the refusal. */
function answer(header: string | undefined, by = callers): string {
  const { id, code, message } = by.identify(header) as Partial<ApiKey & KeyRefusal>;
  return id === 'k1' ? 'let in' : `${code}: ${message}`;
}

it('lets in a key under any spelling of Bearer, and nothing else, and says why', () => {
  const [live, test] = [issue(), issue('staging')];
  const short = live.slice(0, -1);
  const malformed = ['x', `${live} x`, `"${live}"`, `${live},`, `\t${live}`, live.slice(1), short, `${live}0`];
  const alike = [`${short}-`, `${short}é`, live.toUpperCase(), live.replace('live', 'beta')];
  const all = (sent: string[], start: string, expected: RegExp) =>
    sent.map((one): [string, RegExp] => [start + one, expected]);
  const cases: [string | undefined, RegExp][] = [
    ...['Bearer ', 'bearer ', 'BEARER ', 'beArer    '].flatMap((start) => all([live], start, /^let in$/)),
    [undefined, /^missing_api_key: No API key was sent\. Send "Authorization: Bearer <key>"\.$/],
    ['Basic dXNlcjpwYXNz', /^missing_api_key: .* not of the Bearer scheme\. Send "Authorization: Bearer <key>"\.$/],
    ...all(['', '  '], 'Bearer', /^missing_api_key: .* but no API key\. Send/),
    ...all(['Bearerps_live_x', live], '', /^missing_api_key: .* not of the Bearer/),
    ...all([...malformed, ...alike], 'Bearer ', /^invalid_api_key: This is not an API key/),
    [`Bearer ${short}${live.endsWith('0') ? '1' : '0'}`, /^invalid_api_key: .* mistyped/],
    [`Bearer ${test}`, /^invalid_api_key: .* staging key .* production service.*"ps_live_"/],
    [`Bearer ${makeKey('production')}`, /^invalid_api_key: .* does not know/],
  ];
  for (const [sent, expected] of cases) assert.match(answer(sent), expected, sent);
  const staging = callersOf('staging');
  assert.match(answer(`Bearer ${live}`, staging), /production key .* staging service.*"ps_test_"/);
  assert.equal(answer(`Bearer ${test}`, staging), 'let in');
});

it('gives the record as it is now, also when the header is known: a plan, the end of a grace, a revocation', () => {
  const [old, next] = [makeKey('production'), makeKey('production')];
  const rotated = record([old, next]);
  rotated.secrets[0].endsAt = clock.now() + 1_000;
  set(rotated);
  for (const [ms, expected] of [
    [0, /^let in/],
    [999, /^let in/],
    [1, /revoked or replaced/],
  ] as const) {
    clock.advance(ms);
    assert.match(answer(`Bearer ${old}`), expected);
    assert.equal(answer(`Bearer ${next}`), 'let in');
  }
  set({ ...rotated, perMinute: 300 });
  assert.equal((callers.identify(`Bearer ${next}`) as ApiKey).perMinute, 300);
  set({ ...rotated, revokedAt: clock.wall() });
  assert.match(answer(`Bearer ${next}`), /^invalid_api_key: .* revoked or replaced/);
});

it('goes by the record as it will be when a write is decided: revoked, rotated, gone, or the same', () => {
  const [old, next] = [makeKey('production'), makeKey('production')];
  set(record([old]));
  const rotated = record([next, old]);
  rotated.secrets[1].endsAt = clock.now() + 1_000;
  const isGood = (key: ApiKey | undefined) => !('code' in callers.identifyAhead(`Bearer ${old}`, key));
  const revoked = record([old], { revokedAt: 1 });
  const aheads = [record([old]), record([old], { perDay: 5 }), rotated, revoked, record([next]), undefined];
  assert.deepEqual(aheads.map(isGood), [true, true, true, false, false, false]);
  clock.advance(1_000);
  assert.equal(isGood(rotated), false);
  set(revoked);
  assert.equal(isGood(revoked), false, 'durable already');
});

it('makes one SHA-256 of a good header; keeps none that is not, none swollen, and no more than so many', (t) => {
  // Each key in 64 spellings of `Bearer`: making 10,000 keys would take longer than all the rest.
  const spelled = (text: string, n: number) =>
    `${'bearer'.replace(/./g, (char, at) => (n & (1 << at) ? char.toUpperCase() : char))} ${text}`;
  const texts = Array.from({ length: Math.ceil((MAX_KNOWN_HEADERS + 1) / 64) }, () => makeKey('production'));
  const headers = texts.flatMap((text) => Array.from({ length: 64 }, (_, n) => spelled(text, n)));
  const [first, ...others] = headers.slice(0, MAX_KNOWN_HEADERS + 1);
  const ended = makeKey('production');
  set(record(texts));
  set(record([ended], { revokedAt: 1 }));
  const hash = t.mock.method(crypto, 'createHash');
  syncBuiltinESMExports();
  t.after(() => {
    hash.mock.restore();
    syncBuiltinESMExports();
  });
  const hashes = (...headers: string[]) => {
    const before = hash.mock.callCount();
    for (const header of headers) answer(header);
    return hash.mock.callCount() - before;
  };
  const swollen = `Bearer ${' '.repeat(5_000)}${texts[0]}`;
  assert.equal(hashes(first, first, first), 1);
  for (const not of [`Bearer ${makeKey('production')}`, `Bearer ${ended}`, swollen])
    assert.equal(hashes(not, not), 2, not);
  assert.equal(hashes(...others), MAX_KNOWN_HEADERS);
  assert.equal(hashes(others.at(-1)!), 0, 'the newest is kept');
  assert.equal(hashes(first), 1, 'the others went');
});

function promising(): Limiter {
  const limiter = new SlotLimiter({ clock, unix: () => clock.now(), banAfter: 1 });
  const elsewhere = () => Promise.resolve().then(() => meanwhile());
  const take: Limiter['take'] = (caller) => {
    const decision = structuredClone(limiter.take(caller));
    return elsewhere().then(() => decision);
  };
  return { take, fresh: elsewhere, look: (caller) => limiter.look(caller), lift: (caller) => limiter.lift(caller) };
}

function admission(text: string): Parameters<Gate['admit']>[0] {
  const req = { headers: { authorization: `Bearer ${text}` }, socket: { remoteAddress: '192.0.2.1' } };
  return { req: req as IncomingMessage, caller: undefined, limits: undefined, resetsAt: undefined };
}

/** The value of a header among those that tell the limits. */
const told = (limits: string | undefined, name: string) => limits?.match(`(?:^|\n)${name}: (.*)\r\n`)?.[1];

async function ask(text: string, limiter = promising()) {
  const asked = admission(text);
  const reply = await gate.admit(asked, callers, limiter);
  return { ...asked, status: reply?.status, body: reply && JSON.parse(reply.body) };
}

it('gives a promise where the limiter does; a ban takes all that remains', async () => {
  const text = issue();
  const limiter = promising();
  const replies = await Promise.all([1, 2, 3].map(() => ask(text, limiter)));
  const remaining = replies.map(({ status, limits }) => `${status} ${told(limits, 'X-RateLimit-Remaining')}`);
  assert.deepEqual(remaining, ['undefined 1', 'undefined 0', '429 0']);
  const isTold = replies.map(({ resetsAt, limits }) => resetsAt === Number(told(limits, 'X-RateLimit-Reset')));
  assert.deepEqual([isTold, replies[0].resetsAt], [[false, false, true], undefined]);
  assert.equal(gate.admit(admission(text), callers, new SlotLimiter({ clock, unix: () => 0 })), undefined);

  clock.advance(70_000);
  const { status, body, limits } = await ask(text, limiter);
  assert.deepEqual([status, body.code], [429, 'key_banned']);
  assert.equal(body.message, 'this key is banned for a while: it kept sending requests after a 429; ask again in 51 s');
  assert.deepEqual(limits?.split('\r\n'), [
    'X-RateLimit-Limit: 2',
    'X-RateLimit-Remaining: 0',
    `X-RateLimit-Reset: ${clock.wall() / 1000 + 50}`,
    'RateLimit-Policy: "minute";q=2;w=60, "day";q=9;w=86400',
    'RateLimit: "minute";r=2;t=0, "day";r=7;t=86330',
    '',
  ]);
  assert.deepEqual(bans, ['k1 121'], 'told once');
});

it('identifies the caller again after the promise: a key that ended meanwhile gets nothing', async () => {
  const text = issue();
  meanwhile = () => set(record([text], { revokedAt: 1 }));
  const { status, caller, limits } = await ask(text);
  assert.deepEqual([status, caller, told(limits, 'RateLimit-Policy')], [401, undefined, '"address";q=60;w=60']);
});

it('asks for news before it refuses a key that it does not know, and only then', async () => {
  const text = makeKey('production');
  meanwhile = () => set(record([text]));
  assert.equal((await ask(text)).caller?.id, 'k1');
  let asked = 0;
  meanwhile = () => asked++;
  const limiter = promising();
  const { status, limits } = await ask(makeKey('production'), limiter);
  assert.deepEqual([status, told(limits, 'X-RateLimit-Remaining'), asked], [401, '59', 1]);
  for (const other of ['nonsense', makeKey('staging'), `${text.slice(0, -1)}!`]) {
    assert.equal((gate.admit(admission(other), callers, limiter) as Reply).status, 401);
  }
  assert.equal(asked, 1);
});

it('what the limiter cannot decide is not admitted', async () => {
  const text = issue();
  meanwhile = () => {
    throw new Error('no database');
  };
  await assert.rejects(ask(text), /no database/);
  await assert.rejects(ask(makeKey('production')), /no database/);
});
