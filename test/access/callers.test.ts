import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Callers, type KeyRefusal, MAX_CACHED_HEADERS } from '../../src/access/callers.ts';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import { SetClock } from '../../src/clock.ts';
import type { ApiKey, Environment, Reading } from '../../src/store/model.ts';

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
  callers = new Callers(keys as unknown as Reading, 'production', clock);
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
    const staging = new Callers(keys as unknown as Reading, 'staging', clock);
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

describe('the cache', () => {
  it('asks the store once for a header that is good', () => {
    const header = `Bearer ${issue()}`;
    for (let n = 0; n < 5; n++) assertKnown(header);
    assert.equal(keys.lookups, 1);
  });

  it('keeps nothing of what was refused', () => {
    const header = `Bearer ${makeKey('production')}`;
    refusal(header);
    refusal(header);
    assert.equal(keys.lookups, 2);
  });

  it('stops a revoked key at once', () => {
    const text = issue();
    assertKnown(`Bearer ${text}`);
    keys.set(record([text], { revokedAt: clock.wall() }));
    const { code, message } = refusal(`Bearer ${text}`);
    assert.deepEqual([code, /revoked or replaced/.test(message)], ['invalid_api_key', true]);
  });

  it('gives the record as it is now: a changed plan is in force at once', () => {
    const text = issue();
    assertKnown(`Bearer ${text}`);
    keys.set(record([text], { perMinute: 300 }));
    assert.equal((callers.identify(`Bearer ${text}`) as ApiKey).perMinute, 300);
  });

  it('ends the grace of a rotated-out key on time, also when the header is known', () => {
    const [old, next] = [makeKey('production'), makeKey('production')];
    const rotated = record([old, next]);
    rotated.secrets[0].endsAt = clock.wall() + 1_000;
    keys.set(rotated);
    assertKnown(`Bearer ${old}`);
    clock.advance(999);
    assertKnown(`Bearer ${old}`);
    clock.advance(1);
    assert.match(refusal(`Bearer ${old}`).message, /revoked or replaced/);
    assertKnown(`Bearer ${next}`);
    assert.equal(keys.lookups, 2);
  });

  it('a jump of the wall clock ends nothing but a grace', () => {
    const header = `Bearer ${issue()}`;
    assertKnown(header);
    for (const wall of [0, 9e15]) {
      clock.setWall(wall);
      assertKnown(header);
    }
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
