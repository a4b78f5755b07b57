/** The gate before a limiter that promises its decisions, as one shared by several processes does. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { beforeEach, it } from 'node:test';
import { Addresses } from '../../src/access/addresses.ts';
import { Callers } from '../../src/access/callers.ts';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Limiter } from '../../src/access/limits.ts';
import { Gate } from '../../src/gate.ts';
import type { Reply } from '../../src/http/reply.ts';
import type { ApiKey } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';

let clock: SetClock;
let keys: Map<string, ApiKey>;
let gate: Gate;
let callers: Callers;
let bans: string[];
/** What happens elsewhere while the limiter, or the news, is waited for. */
let meanwhile: () => void;

beforeEach(() => {
  clock = new SetClock();
  keys = new Map();
  bans = [];
  meanwhile = () => {};
  callers = new Callers({ read: { keys: { byDigest: keys } }, unix: () => clock.now() }, 'production');
  const onBan = ({ id }: ApiKey, seconds: number) => void bans.push(`${id} ${seconds}`);
  gate = new Gate({ addresses: new Addresses({ clock }), trustProxy: 0, onBan });
});

function set(text: string, change: Partial<ApiKey> = {}): ApiKey {
  const limits = { plan: 'enterprise' as const, perMinute: 2, perDay: 9 };
  const common = { id: 'k1', slot: 0, name: '', environment: 'production' as const, createdAt: 0, ...limits };
  const key = { ...common, secrets: [{ digest: digestOf(text) }], ...change };
  keys.set(digestOf(text), key);
  return key;
}

function promising(): Limiter {
  const limiter = new SlotLimiter({ clock, unix: () => clock.now(), banAfter: 1 });
  return {
    take: async (caller) => {
      const decision = structuredClone(limiter.take(caller));
      await Promise.resolve();
      meanwhile();
      return decision;
    },
    fresh: async () => {
      await Promise.resolve();
      meanwhile();
    },
    look: (caller) => limiter.look(caller),
    lift: (caller) => limiter.lift(caller),
  };
}

const admission = (text: string) => ({
  req: { headers: { authorization: `Bearer ${text}` }, socket: { remoteAddress: '192.0.2.1' } } as IncomingMessage,
  caller: undefined as ApiKey | undefined,
  limits: undefined as string | undefined,
  resetsAt: undefined as number | undefined,
});

/** The value of a header among those that tell the limits. */
const told = (limits: string | undefined, name: string) => limits?.match(`(?:^|\n)${name}: (.*)\r\n`)?.[1];

async function ask(text: string, limiter: Limiter) {
  const asked = admission(text);
  const reply = await gate.admit(asked, callers, limiter);
  return { ...asked, status: reply?.status, body: reply && JSON.parse(reply.body) };
}

it('gives a promise where the limiter does, and nothing of one caller to the other', async () => {
  const text = makeKey('production');
  set(text);
  const limiter = promising();
  const replies = await Promise.all([1, 2, 3].map(() => ask(text, limiter)));
  const remaining = replies.map(({ status, limits }) => `${status} ${told(limits, 'X-RateLimit-Remaining')}`);
  assert.deepEqual(remaining, ['undefined 1', 'undefined 0', '429 0']);
  assert.deepEqual(bans, ['k1 121']);
  const isTold = replies.map(({ resetsAt, limits }) => resetsAt === Number(told(limits, 'X-RateLimit-Reset')));
  assert.deepEqual([isTold, replies[0].resetsAt], [[false, false, true], undefined]);
  assert.equal(gate.admit(admission(text), callers, new SlotLimiter({ clock, unix: () => 0 })), undefined);
});

it('identifies the caller again after the promise: a key that ended meanwhile gets nothing', async () => {
  const text = makeKey('production');
  set(text);
  meanwhile = () => set(text, { revokedAt: 1 });
  const { status, caller, limits } = await ask(text, promising());
  assert.deepEqual([status, caller, told(limits, 'RateLimit-Policy')], [401, undefined, '"address";q=60;w=60']);
});

it('asks for news before it refuses a key that it does not know, and only then', async () => {
  const text = makeKey('production');
  meanwhile = () => set(text);
  assert.equal((await ask(text, promising())).caller?.id, 'k1');
  let asked = 0;
  meanwhile = () => asked++;
  const limiter = promising();
  const { status, limits } = await ask(makeKey('production'), limiter);
  assert.deepEqual([status, told(limits, 'X-RateLimit-Remaining'), asked], [401, '59', 1]);
  for (const other of ['nonsense', makeKey('staging'), `${text.slice(0, -1)}!`]) {
    const reply = gate.admit(admission(other), callers, limiter) as Reply;
    assert.equal(reply.status, 401);
  }
  assert.equal(asked, 1);
});

it('what the limiter cannot decide is not admitted', async () => {
  const text = makeKey('production');
  set(text);
  meanwhile = () => {
    throw new Error('no database');
  };
  await assert.rejects(ask(text, promising()), /no database/);
  await assert.rejects(ask(makeKey('production'), promising()), /no database/);
});

it('a ban takes all that remains, and the state of both windows is told as it is', async () => {
  const text = makeKey('production');
  set(text);
  const limiter = promising();
  for (let n = 0; n < 3; n++) await ask(text, limiter);
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

it('rechecks a caller against the record of its key as it will be', () => {
  const text = makeKey('production');
  const key = set(text);
  const asked = admission(text);
  gate.recheck(asked, callers, key);
  const code = { code: 'invalid_api_key' };
  assert.throws(() => gate.recheck(asked, callers, { ...key, revokedAt: 1 }), code);
  assert.throws(() => gate.recheck(asked, callers, undefined), code);
});

it('tells who has no key what its address has left', () => {
  const socket = { remoteAddress: '192.0.2.1' } as Socket;
  assert.deepEqual(gate.limitsWithoutKey(undefined, socket).split('\r\n'), [
    'X-RateLimit-Limit: 60',
    'X-RateLimit-Remaining: 60',
    `X-RateLimit-Reset: ${clock.wall() / 1000}`,
    'RateLimit-Policy: "address";q=60;w=60',
    'RateLimit: "address";r=60;t=0',
    '',
  ]);
});
