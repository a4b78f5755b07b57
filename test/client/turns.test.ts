/** Many calls at once: which goes when, after refusals, at a reset, and while nothing is known of limits. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Fetch } from '../../src/client/client.ts';
import type { Timing } from '../../src/client/turns.ts';
import { SetClock } from '../clock.ts';
import { type Answer, all, failure, harness, inTurn, json, newPet, REX, refusal, until } from './front.ts';

const made = json(REX, {}, 201);
const wait = (seconds: number | string) => ({ 'Retry-After': `${seconds}` });
const limits = (minute: number, resetsIn = 60) => ({
  'RateLimit-Policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
  RateLimit: `"minute";r=${minute};t=${resetsIn}, "day";r=900;t=9000`,
});
const named = (body: string) => Number(JSON.parse(body).name);

/** Time that passes only when no request and no reply is on its way, however long a busy machine takes to deliver it. */
function patient(): { time: SetClock; timing: Timing; fetch: Fetch } {
  const time = new SetClock();
  let [underWay, moves] = [0, 0];
  const counted: Fetch = async (url, init) => {
    underWay++;
    moves++;
    try {
      const reply = await fetch(url, init);
      return new Response(await reply.text(), reply);
    } finally {
      underWay--;
      moves++;
    }
  };
  const sleep = async (ms: number, signal: AbortSignal) => {
    // The client lets a timer pass after each reply, and may send something then.
    for (let timers = 0, seen = moves; timers < 3 && !signal.aborted; seen = moves) {
      await new Promise((go) => setTimeout(go));
      timers = underWay === 0 && seen === moves ? timers + 1 : 0;
    }
    if (!signal.aborted) time.advance(ms);
  };
  return { time, timing: { now: () => time.now(), sleep }, fetch: counted };
}

/** The most that came within 100 ms of each other. */
const densest = (times: number[]) =>
  Math.max(...times.map((first) => times.filter((time) => time >= first && time <= first + 100).length));

for (const count of [10, 16]) {
  for (const status of [429, 503]) {
    test(`${count} calls that got a ${status} together come back in order, and not together`, async (t) => {
      let isRefusing = false;
      const returned: { name: number; at: number }[] = [];
      const fault = async ({ body }: { body: string }) => {
        if (front.asked.length === 1) return json(REX, limits(60), 201);
        if (!isRefusing && returned.length === 0) {
          await until(() => front.asked.length === 1 + count); // all are under way before the first is refused
          isRefusing = true;
        }
        if (front.asked.length <= 1 + count) return refusal(status, 'busy', { ...limits(50), ...wait(5) });
        returned.push({ name: named(body), at: time.now() });
        return made;
      };
      const { client, front, time } = await harness(t, fault, patient());
      await client.createPet(newPet);
      const startedAt = time.now();
      // With 16 under way, those beyond have not been sent: they go behind all that were refused.
      const names = Array.from({ length: count === 16 ? 20 : count }, (_, n) => n);
      await Promise.all(names.map((n) => client.createPet({ name: `${n}`, categoryId: 1 })));
      assert.deepEqual(
        returned.map(({ name }) => name),
        names,
      );
      const times = returned.map(({ at }) => at - startedAt);
      assert.ok(times[0] >= 5_000 && times[0] <= 6_000, `the first came back after ${times[0]} ms`);
      assert.ok(densest(times) <= count / 4, `${times}`);
    });
  }
}

test('a 503 with Retry-After holds its operation alone, a 429 all of them', async (t) => {
  for (const [status, expected] of [
    [503, ['getPet at 0', 'createPet at 6000']],
    [429, ['createPet at 6000', 'getPet at 6120']],
  ] as const) {
    const busy = inTurn(refusal(status, 'unavailable', wait(5)), made);
    const answer = ({ method }: { method: string }) => (method === 'POST' ? busy() : json(REX));
    let heard = 0;
    const { client, time } = await harness(t, answer, { ...patient(), onExchange: () => void heard++ });
    const order: string[] = [];
    const startedAt = time.now();
    const note = (name: string) => () => void order.push(`${name} at ${time.now() - startedAt}`);
    const first = client.createPet(newPet).then(note('createPet'));
    await until(() => heard === 1); // its refusal is here
    await Promise.all([first, client.getPet(1).then(note('getPet'))]);
    assert.deepEqual(order, expected);
  }
});

test('what is told is waited for up to 25 hours; a longer wait holds others for the budget of one call', async (t) => {
  for (const [seconds, isAsked] of [
    [25 * 3_600, false],
    [25 * 3_600 + 1, true],
  ] as const) {
    const answer = inTurn(refusal(429, 'rate_limited', wait(seconds)), json(REX));
    const { client, front, time } = await harness(t, answer);
    const options = { budgetMs: 1_000 };
    assert.equal((await failure(client.getPet(1, options))).code, 'rate_limited');
    time.advance(3_000);
    const later = await client.getPet(1, options).then(
      () => true,
      () => false,
    );
    assert.deepEqual([later, front.asked.length], [isAsked, isAsked ? 2 : 1], `${seconds} s`);
  }
});

/** A client whose own fetch answers at once: it tells which call was sent when, to the millisecond. */
async function exact(t: TestContext, answer: (name: number, sent: number) => Answer, options = {}) {
  const time = new SetClock();
  const sleep = async (ms: number, signal: AbortSignal) => {
    // The client lets a timer pass after each reply: timers of one length end in their order, so what began before this
    // sleep is done before time passes, also where the process had to wait for its core.
    for (let turn = 0; turn < 3; turn++) await new Promise((go) => setTimeout(go));
    if (!signal.aborted) time.advance(ms);
  };
  const sent: { name: number; at: number }[] = [];
  const fetch: Fetch = async (_, { body }) => {
    const name = body === undefined ? 0 : named(body);
    sent.push({ name, at: time.now() });
    const { body: text, ...init } = answer(name, sent.length);
    return new Response(text, init);
  };
  const { client } = await harness(t, () => 'lost', {
    fetch,
    time,
    timing: { now: () => time.now(), sleep },
    ...options,
  });
  const create = (name: number) => client.createPet({ name: `${name}`, categoryId: 1 });
  return { client, create, sent };
}

test('no call is sent between the end of a refusal and the moment it holds the others', async (t) => {
  const fault = inTurn(refusal(429, 'rate_limited', wait(60)), json(REX));
  const late: Promise<unknown>[] = [];
  const own: Fetch = async (url, init) => {
    const { body, ...reply } = await fetch(url, init);
    const flush = () => void setImmediate(() => late.push(failure(client.getPet(1)))); // before a timer of 0 ms fires
    return {
      ...reply,
      status: 429,
      headers: new Headers(wait(60)),
      body: body?.pipeThrough(new TransformStream({ flush })),
    };
  };
  const sleep = () => new Promise<never>(() => {});
  const { client, front } = await harness(t, fault, { fetch: own, timing: { sleep } });
  const refused = failure(client.getPet(1));
  await until(() => late.length === 1);
  await new Promise((go) => setTimeout(go, 50));
  assert.equal(front.asked.length, 1);
  await client.close();
  await Promise.all([refused, ...late]);
});

test('what was never sent comes back as slowly as what was refused, in order, and then faster and faster', async (t) => {
  const refused = refusal(429, 'rate_limited', { ...limits(50), ...wait(5) });
  const { create, sent } = await exact(t, (_, count) => (count <= 4 ? refused : json(REX, limits(50), 201)));
  const names = Array.from({ length: 200 }, (_, n) => n);
  await Promise.all(names.map(create));
  const [first, ...returned] = sent.slice(3);
  assert.deepEqual(
    returned.map(({ name }) => name),
    names,
  );
  const times = returned.map(({ at }) => at - first.at);
  assert.ok(times[0] >= 5_000 && densest(times.slice(0, 16)) === 1, `${times}`);
  assert.ok(densest(times.slice(0, 64)) <= 4 && densest(times.slice(0, 128)) <= 8, `${times}`);
  assert.ok(times[199] - times[0] < 6_000, `${times}`);
});

test('after a gateway had no upstream for a while, the many calls that failed come back faster and faster, in time', async (t) => {
  const count = 1_000;
  const { create, sent } = await exact(t, (_, nth) => (nth <= count ? { status: 502 } : made));
  const created = Array.from({ length: count }, (_, n) => create(n));
  await Promise.all(created);
  const again = sent.slice(count).filter(({ name }, at) => sent.findIndex((one) => one.name === name) < count + at);
  const times = again.map(({ at }) => at - again[0].at);
  assert.ok(densest(times.slice(0, 16)) === 1 && densest(times.slice(0, 64)) <= 4, `${times.slice(0, 64)}`);
  assert.ok(times[times.length - 1] < 15_000, `the last came back after ${times[times.length - 1]} ms`);
});

test('who comes back after a refusal holds up no operation that it did not concern, and is not passed by its own', async (t) => {
  const { client, create, sent } = await exact(t, (name, count) =>
    count <= 4 ? refusal(503, 'unavailable', wait(5)) : name === 0 ? json(REX) : made,
  );
  const creating = [1, 2, 3, 4, 5, 6, 7, 8].map(create);
  await until(() => sent.length === 6); // the second of those that come back
  const later = [client.getPet(1), create(9)];
  await Promise.all([...creating, ...later]);
  const names = sent.slice(4).map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => name !== 0),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  assert.ok(names.indexOf(0) <= 3, `${names}`);
});

test('once all that waited are gone, calls are spaced no more', async (t) => {
  const { create, sent } = await exact(t, (_, count) => (count === 1 ? refusal(429, 'rate_limited', wait(5)) : made));
  await create(1);
  await Promise.all([2, 3, 4, 5].map(create));
  assert.equal(new Set(sent.slice(2).map(({ at }) => at)).size, 1);
});

test('at a reset the calls go in the order in which they were made', async (t) => {
  let left = 1;
  const names: number[] = [];
  const fault = ({ body }: { body: string }) => {
    if (waits.length > 0 && left <= 0) left = 60;
    names.push(named(body));
    return json(REX, limits(--left), 201);
  };
  const { client, waits } = await harness(t, fault);
  await client.createPet({ name: '0', categoryId: 1 });
  const later = Array.from({ length: 30 }, (_, n) => n + 1);
  await Promise.all(later.map((n) => client.createPet({ name: `${n}`, categoryId: 1 })));
  assert.deepEqual(names.slice(0, 2), [0, 1]);
  const places = names.map((name, at) => Math.abs(name - at));
  assert.ok(Math.max(...places) < 16, 'none is later by more than what was under way'); // sockets are no queue
  assert.equal(waits[0], 61_000);
});

test('one slow call does not hold up the others before anything is known, nor a proxy that tells no limits', async (t) => {
  const { client, front } = await harness(t, () => (front.asked.length === 1 ? new Promise<never>(() => {}) : made));
  const slow = failure(client.createPet(newPet));
  await until(() => front.asked.length === 1);
  await client.createPet(newPet, { budgetMs: 5_000 });
  await client.close();
  assert.equal((await slow).code, 'closed');

  let [under, most] = [0, 0];
  const stripped = await harness(t, async () => {
    most = Math.max(most, ++under);
    if (stripped.front.asked.length > 4) await until(() => under >= 16 || stripped.front.asked.length >= 60);
    under--;
    return made;
  });
  await Promise.all(Array.from({ length: 60 }, () => stripped.client.createPet(newPet)));
  assert.equal(most, 16);
  const told = await harness(t, () => json(REX, { 'X-RateLimit-Remaining': '0' }, 201));
  await told.client.createPet(newPet);
  assert.equal(told.client.limits, undefined);
});

test('a 429 without Retry-After is backed off from exponentially, by the call and by those behind it', async (t) => {
  const { client, front, waits } = await harness(t, () => refusal(429, 'rate_limited'));
  assert.equal((await failure(client.createPet(newPet))).tries, 6);
  // The time that is doubled, and as much again, up to a second, at random: here at its greatest.
  assert.deepEqual(waits.splice(0), [400, 800, 1_600, 2_600, 4_200]);
  front.fault = inTurn(refusal(429, 'rate_limited'), made);
  await Promise.all([client.createPet(newPet), client.createPet(newPet)]);
});

test('Retry-After as a date is held against the date of the reply; one that is over, or 0, is no time', async (t) => {
  const at = (seconds: number) => new Date(Date.UTC(2031, 0, 1, 12, 0, seconds)).toUTCString();
  const told = (end: string) => refusal(503, 'unavailable', { Date: at(0), ...wait(end) });
  const answers = inTurn(told(at(7)), told(at(-60)), told('0'), told('soon'), made);
  const { client, waits } = await harness(t, answers);
  await client.createPet(newPet);
  assert.deepEqual(waits.map(Math.round), [8_000, 400, 800, 1_600]);
});

test('an absurd Retry-After ends the call, and holds the client for one budget, not for good', async (t) => {
  for (const absurd of ['99999999999', '9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT']) {
    const { client, front, time } = await harness(t, () => refusal(429, 'rate_limited', wait(absurd)));
    const error = await failure(client.createPet(newPet));
    assert.deepEqual([error.code, error.tries], ['rate_limited', 1]);
    assert.ok(error.retryAfter! > 1e9 && Number.isSafeInteger(error.retryAfter), `${error.retryAfter}`);
    assert.equal((await failure(client.createPet(newPet, { budgetMs: 60_000 }))).tries, 0, 'it is held for a while');
    front.fault = () => json([REX]);
    time.advance(60_000);
    assert.equal((await all(client.listPets())).length, 1);
  }
  const { client, time } = await harness(t, () => refusal(429, 'key_banned', wait(86_400)));
  await failure(client.createPet(newPet));
  time.advance(80_000_000);
  assert.equal((await failure(client.createPet(newPet))).tries, 0, 'a ban of a day is believed');
});
