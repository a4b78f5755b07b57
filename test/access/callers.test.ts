import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Callers, type KeyRefusal, MAX_CACHED_HEADERS } from '../../src/access/callers.ts';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import { SetClock } from '../../src/clock.ts';
import type { ApiKey, Environment } from '../../src/store/model.ts';

/** The part of a store that callers are found in; counts how often it is asked. */
class Keys {
  keysVersion = 1;
  lookups = 0;
  readonly #byDigest = new Map<string, ApiKey>();

  set(key: ApiKey): void {
    for (const { digest } of key.secrets) this.#byDigest.set(digest, key);
    this.keysVersion++;
  }

  keyByDigest(digest: string): ApiKey | undefined {
    this.lookups++;
    return this.#byDigest.get(digest);
  }
}

let clock: SetClock;
let keys: Keys;
let callers: Callers;

beforeEach(() => {
  clock = new SetClock();
  keys = new Keys();
  callers = new Callers({ read: keys, unix: () => clock.now() }, 'production');
});

function record(texts: string[], change: Partial<ApiKey> = {}): ApiKey {
  return {
    id: 'k1',
    slot: 0,
    name: '',
    plan: 'free',
    perMinute: 60,
    perDay: 1_000,
    environment: 'production',
    createdAt: 0,
    secrets: texts.map((text) => ({ digest: digestOf(text) })),
    ...change,
  };
}

function issue(environment: Environment = 'production'): string {
  const text = makeKey(environment);
  keys.set(record([text], { environment }));
  return text;
}

function refusal(header: string | undefined): KeyRefusal {
  const answer = callers.identify(header);
  assert.ok('code' in answer, `${header} was let in`);
  return answer;
}

function assertKnown(header: string): void {
  assert.equal((callers.identify(header) as ApiKey).id, 'k1', header);
}

describe('who is let in', () => {
  it('a key under any spelling of Bearer, and any number of blanks', () => {
    const text = issue();
    for (const start of ['Bearer ', 'bearer ', 'BEARER ', 'beArer    ']) assertKnown(start + text);
  });

  it('nobody without a key, and the refusal says what to send', () => {
    for (const header of [undefined, '', 'Basic dXNlcjpwYXNz', 'Bearer', 'Bearer  ', 'Bearerps_live_x', issue()]) {
      const { code, message } = refusal(header);
      assert.equal(code, 'missing_api_key', header);
      assert.match(message, /Authorization: Bearer <key>/);
    }
  });

  it('no text that is not a key', () => {
    const text = issue();
    for (const sent of ['x', `${text} x`, `"${text}"`, `${text},`, `\t${text}`, text.slice(1)]) {
      const { code, message } = refusal(`Bearer ${sent}`);
      assert.deepEqual([code, /This is not an API key/.test(message)], ['invalid_api_key', true], sent);
    }
  });

  it('a mistyped key is refused by its checksum, without a look-up', () => {
    const text = issue();
    const last = text.endsWith('0') ? '1' : '0';
    assert.match(refusal(`Bearer ${text.slice(0, -1)}${last}`).message, /mistyped/);
    assert.equal(keys.lookups, 0);
  });

  it('a key of the other environment is told so, on either side', () => {
    const staging = new Callers({ read: keys, unix: () => clock.now() }, 'staging');
    const message = refusal(`Bearer ${issue('staging')}`).message;
    assert.match(message, /staging key .* production service.*"ps_live_"/);
    const other = staging.identify(`Bearer ${makeKey('production')}`) as KeyRefusal;
    assert.match(other.message, /production key .* staging service.*"ps_test_"/);
    assert.equal((staging.identify(`Bearer ${issue('staging')}`) as ApiKey).environment, 'staging');
  });

  it('no key that was never issued', () => {
    const { code, message } = refusal(`Bearer ${makeKey('production')}`);
    assert.equal(code, 'invalid_api_key');
    assert.match(message, /does not know/);
  });
});

describe('asked again when a write is decided', () => {
  const ahead = (header: string, key: ApiKey | undefined) => 'code' in callers.identifyAhead(header, key);

  it('goes by the record as it will be: revoked, rotated, gone, or the same', () => {
    const [old, next] = [makeKey('production'), makeKey('production')];
    const key = record([old]);
    keys.set(key);
    const header = `Bearer ${old}`;
    assertKnown(header);
    assert.equal(ahead(header, key), false);
    assert.equal(ahead(header, record([old], { perDay: 5 })), false);
    assert.equal(ahead(header, record([old], { revokedAt: 1 })), true);
    assert.equal(ahead(header, record([next])), true);
    assert.equal(ahead(header, undefined), true);
    const rotated = record([next, old]);
    rotated.secrets[1].endsAt = clock.now() + 1_000;
    assert.equal(ahead(header, rotated), false);
    clock.advance(1_000);
    assert.equal(ahead(header, rotated), true);
    assert.equal(ahead(header, key), false);
    assert.equal(keys.lookups, 1);
  });

  it('and by what is durable already', () => {
    const text = issue();
    assertKnown(`Bearer ${text}`);
    const revoked = record([text], { revokedAt: 1 });
    keys.set(revoked);
    assert.equal(ahead(`Bearer ${text}`, revoked), true);
  });
});

describe('the cache', () => {
  it('asks the store once for a header that is good, and keeps nothing of what was refused', () => {
    const [good, bad] = [issue(), makeKey('production')];
    for (let n = 0; n < 5; n++) assertKnown(`Bearer ${good}`);
    assert.equal(keys.lookups, 1);
    for (let n = 0; n < 2; n++) refusal(`Bearer ${bad}`);
    assert.equal(keys.lookups, 3);
  });

  it('gives the record as it is now: a changed plan is in force at once, a revoked key stopped', () => {
    const text = issue();
    assertKnown(`Bearer ${text}`);
    keys.set(record([text], { perMinute: 300 }));
    assert.equal((callers.identify(`Bearer ${text}`) as ApiKey).perMinute, 300);
    keys.set(record([text], { revokedAt: clock.wall() }));
    const { code, message } = refusal(`Bearer ${text}`);
    assert.deepEqual([code, /revoked or replaced/.test(message)], ['invalid_api_key', true]);
  });

  it('ends the grace of a rotated-out key on time, also when the header is known', () => {
    const [old, next] = [makeKey('production'), makeKey('production')];
    const rotated = record([old, next]);
    rotated.secrets[0].endsAt = clock.now() + 1_000;
    keys.set(rotated);
    assertKnown(`Bearer ${old}`);
    clock.advance(999);
    assertKnown(`Bearer ${old}`);
    clock.advance(1);
    assert.match(refusal(`Bearer ${old}`).message, /revoked or replaced/);
    assertKnown(`Bearer ${next}`);
    assert.equal(keys.lookups, 2);
  });

  it('has a maximum, and starts anew beyond it', () => {
    const texts = Array.from({ length: MAX_CACHED_HEADERS + 1 }, () => makeKey('production'));
    keys.set(record(texts));
    for (const text of texts) assertKnown(`Bearer ${text}`);
    assert.equal(keys.lookups, MAX_CACHED_HEADERS + 1);
    assertKnown(`Bearer ${texts[MAX_CACHED_HEADERS]}`);
    assert.equal(keys.lookups, MAX_CACHED_HEADERS + 1, 'the newest is kept');
    assertKnown(`Bearer ${texts[0]}`);
    assert.equal(keys.lookups, MAX_CACHED_HEADERS + 2, 'the others went');
  });

  it('does not keep a header swollen with blanks', () => {
    const header = `Bearer ${' '.repeat(5_000)}${issue()}`;
    assertKnown(header);
    assertKnown(header);
    assert.equal(keys.lookups, 2);
  });
});
