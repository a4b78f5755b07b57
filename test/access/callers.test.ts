import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { beforeEach, it } from 'node:test';
import { Callers, type KeyRefusal, MAX_KNOWN_HEADERS } from '../../src/access/callers.ts';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import type { ApiKey, Environment } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';

let clock: SetClock;
let keys: Map<string, ApiKey>;
let callers: Callers;

function callersOf(environment: Environment): Callers {
  return new Callers({ read: { keys: { byDigest: keys } }, unix: () => clock.now() }, environment);
}

beforeEach(() => {
  clock = new SetClock();
  keys = new Map();
  callers = callersOf('production');
});

/** The key k1 with these secrets. */
function record(texts: string[], change: Partial<ApiKey> = {}): ApiKey {
  const limits = { plan: 'free', perMinute: 60, perDay: 1_000 } as const;
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
  const mistyped = live.slice(0, -1) + (live.endsWith('0') ? '1' : '0');
  const cases: [string | undefined, RegExp][] = [
    ...['Bearer ', 'bearer ', 'BEARER ', 'beArer    '].map((start): [string, RegExp] => [start + live, /^let in$/]),
    [undefined, /^missing_api_key: No API key was sent\. Send "Authorization: Bearer <key>"\.$/],
    ['Basic dXNlcjpwYXNz', /^missing_api_key: .* not of the Bearer scheme\. Send "Authorization: Bearer <key>"\.$/],
    ...['Bearer', 'Bearer  '].map((sent): [string, RegExp] => [sent, /^missing_api_key: .* but no API key\. Send/]),
    ...['Bearerps_live_x', live].map((sent): [string, RegExp] => [sent, /^missing_api_key: .* not of the Bearer/]),
    ...['x', `${live} x`, `"${live}"`, `${live},`, `\t${live}`, live.slice(1)].map((sent): [string, RegExp] => {
      return [`Bearer ${sent}`, /^invalid_api_key: This is not an API key/];
    }),
    [`Bearer ${mistyped}`, /^invalid_api_key: .* mistyped/],
    [`Bearer ${test}`, /^invalid_api_key: .* staging key .* production service.*"ps_live_"/],
    [`Bearer ${makeKey('production')}`, /^invalid_api_key: .* does not know/],
  ];
  for (const [sent, expected] of cases) assert.match(answer(sent), expected, sent);
  const staging = callersOf('staging');
  assert.match(answer(`Bearer ${live}`, staging), /production key .* staging service.*"ps_test_"/);
  assert.equal(answer(`Bearer ${test}`, staging), 'let in');
});

it('gives the record as it is now: a changed plan is in force at once, a revoked key stopped', () => {
  const header = `Bearer ${issue()}`;
  const key = callers.identify(header) as ApiKey;
  set({ ...key, perMinute: 300 });
  assert.equal((callers.identify(header) as ApiKey).perMinute, 300);
  set({ ...key, revokedAt: clock.wall() });
  assert.match(answer(header), /^invalid_api_key: .* revoked or replaced/);
});

it('ends the grace of a rotated-out key on time, also when the header is known', () => {
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

it('makes one SHA-256 of a header that is good; keeps none that is not, none swollen, and no more than so many', (t) => {
  const texts = Array.from({ length: MAX_KNOWN_HEADERS + 1 }, () => makeKey('production'));
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
  const [first, ...others] = texts.map((text) => `Bearer ${text}`);
  const unknown = `Bearer ${makeKey('production')}`;
  const revoked = `Bearer ${ended}`;
  const swollen = `Bearer ${' '.repeat(5_000)}${texts[0]}`;
  assert.equal(hashes(first, first, first), 1);
  for (const not of [unknown, revoked, swollen]) assert.equal(hashes(not, not), 2, not);
  assert.equal(hashes(...others), MAX_KNOWN_HEADERS);
  assert.equal(hashes(others.at(-1)!), 0, 'the newest is kept');
  assert.equal(hashes(first), 1, 'the others went');
});
