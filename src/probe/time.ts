/** E: time and connections. */
import { setTimeout as wait } from 'node:timers/promises';
import { inPlace, nothing, times } from './judgement.ts';
import { live } from './lived.ts';
import { IDLE_MS } from './origin.ts';
import {
  allowed,
  ask,
  breaks,
  get,
  JSON_TYPE,
  type Judgement,
  OK,
  PET,
  post,
  type Row,
  reply,
  row,
  type Seen,
  type Sender,
  same,
} from './row.ts';
import type { Talk } from './talk.ts';
import { headerOf, isOld, shown, statusOf, targetOf } from './wire.ts';

/** The longest time that a client holds its body back for a reply. */
const HELD_MS = 1_500;
/** Length of the end of a body, which is held back. */
const HELD_BYTES = 1_000;
/** The time after a 100 for which the body is held back: a refusal may follow. */
const INVITED_MS = 500;
/** The wait for a second try, which comes at once or not at all. */
const SECOND_TRY_MS = 150;
/** The delay of replies, by which each request gets a connection of its own. */
const TOGETHER_MS = 50;
/** Time for a gateway to pass on that the origin has ended a connection. */
const TOLD_MS = 250;
/** Time for the client to read bytes that have come, or the end of its connection. */
const SEEN_MS = 50;

/** The judgement if the reply is not the origin's. */
function other(seen: Seen, status: string, at = 0): Judgement | undefined {
  const reply: Seen['reply'] | undefined = seen.finals[at];
  if (reply === undefined) return breaks(nothing(seen));
  return statusOf(reply) === Number(status.slice(0, 3)) ? undefined : inPlace(reply, `the origin's ${status}`);
}

/** Sends a head and part of a body, and the rest after a reply or after a time-out. Tells which replies came. */
const holding = (lines: string[], first: string, second: string) => (to: Sender) => async (talk: Talk) => {
  talk.write(to.ask('POST', [JSON_TYPE, ...lines, `Content-Length: ${first.length + second.length}`]) + first);
  if (lines.length > 0) await talk.until(() => talk.replies.length > 0, HELD_MS + to.delayMs);
  const isInvited = talk.replies.length > talk.finals.length;
  const isRefused = await talk.whole(1, to.delayMs + (lines.length > 0 ? INVITED_MS : HELD_MS));
  talk.write(second);
  await talk.whole(1);
  return { isInvited, isRefused };
};
type Held = { isInvited: boolean; isRefused: boolean };

const refusal = (status: string, end?: 'closed') => {
  return { isRaw: true, answer: { parts: [reply(status, [], PET)], isEarly: true, end } };
};

/** A refusal that does not wait for the body: a gateway may not wait for it either. */
const early = (id: string, rule: string, status: string, lines: string[], bytes: number): Row =>
  row(
    id,
    rule,
    holding(lines, 'x'.repeat(bytes - HELD_BYTES), 'x'.repeat(HELD_BYTES)),
    refusal(status, 'closed'),
    (seen) => {
      const { isInvited, isRefused } = seen.mark as Held;
      const judged = other(seen, status);
      if (judged) return judged;
      if (!isRefused) return breaks('the refusal waits for the whole body, which the client sends in vain');
      return isInvited ? allowed('the gateway itself says 100 before the refusal') : same();
    },
  );

/**
 * A client goes away in the middle of a body that was refused, and the origin still waits for the rest of it: what is
 * sent next on that connection is taken for body.
 */
const leaving = (to: Sender) => async (talk: Talk) => {
  talk.write(to.ask('POST', [JSON_TYPE, `Content-Length: ${2 * HELD_BYTES}`]) + 'x'.repeat(HELD_BYTES));
  await talk.whole(1, to.delayMs + HELD_MS);
  talk.close();
  await live(SEEN_MS);
  const next = to.connect();
  next.write(get([], '/next')(to));
  return next.whole(1);
};

/**
 * No reply to a request on a connection that was used before: an unsafe request may not be sent again. `most`: the
 * number of times it may arrive; `kept`: the number of connections that the gateway can have kept, and may try.
 */
const lost = (id: string, send: (to: Sender) => string, most = 1, kept = 1): Row => {
  const isWarm = (target: string) => target.endsWith('/warm');
  const talking = (to: Sender) => async (talk: Talk) => {
    const talks = [talk, ...Array.from({ length: kept - 1 }, to.connect)];
    for (const one of talks) one.write(get([], '/warm')(to));
    await Promise.all(talks.map((one) => one.whole(1)));
    const isEnded = await talk.until(() => talk.ended !== undefined, SEEN_MS); // as HTTP/1.0 does
    const next = isEnded ? to.connect() : talk;
    const before = next.finals.length;
    next.write(send(to));
    const isTold = await next.whole(before + 1);
    await live(SECOND_TRY_MS);
    return isTold || next.ended !== undefined;
  };
  const unusual: Partial<Row> = {
    isRaw: true,
    isAlone: true,
    isCounted: true,
    answer: (arrival) => (isWarm(targetOf(arrival)) ? { ...OK, afterMs: TOGETHER_MS } : { parts: [], end: 'lost' }),
  };
  return row(id, '9110 9.2.2', talking, unusual, ({ arrived, pairs, mark }) => {
    const count = arrived.filter((one) => !isWarm(targetOf(one))).length;
    if (pairs.some(({ arrival, reply }) => reply && statusOf(reply) < 400 && !arrival?.answered))
      return breaks('a good reply came, which the origin did not send');
    if (count === 0) return breaks('it did not arrive');
    if (!mark) return breaks('the client got neither a reply nor the end of its connection');
    const told = `it arrived ${times(count)}`;
    if (count > most) return breaks(`${told}: ${most > 1 ? 'a try that failed is tried again' : 'it is done again'}`);
    return count === 1 ? same() : allowed(`${told}: a service that counts requests charges it twice`);
  });
};

/**
 * A connection that was idle for a while may be closed, but only before the next request is sent on it. The gateway
 * goes by the wall clock, the origin by lived time: if the origin is to end its connection, the case waits for both.
 * Connections of other cases are idle too: around the second request none of them ends, since the gateway may take it.
 */
const idle = (seconds: number): Row => {
  const unusual = { isRaw: true, isIdle: true, isSlow: seconds > 10 };
  const talking = (to: Sender) => async (talk: Talk) => {
    talk.write(get()(to));
    if (!(await talk.whole(1)) || statusOf(talk.finals[0]) !== 200) return;
    const idleMs = seconds * 1_000;
    await Promise.all([
      wait(idleMs, undefined, { ref: false }),
      idleMs > IDLE_MS ? live(IDLE_MS + 2 * to.delayMs + TOLD_MS) : undefined,
    ]);
    return to.keepIdle(async () => {
      await live(TOLD_MS);
      if (talk.ended !== undefined) return true;
      talk.write(get()(to));
      await talk.whole(2);
    });
  };
  return row(`idle-${seconds}`, '9112 9.5', talking, unusual, (seen) => {
    const judged = other(seen, '200');
    if (judged) return judged;
    if (seen.mark === true) return allowed(`the gateway closes a connection that is idle for ${seconds} s`);
    return other(seen, '200', 1) ?? same();
  });
};

/** HTTP/1.0 has no chunks: the end of the connection ends such a reply, wherever that is. */
const UNSEEN =
  'the gateway asks in HTTP/1.0, in which half of a reply without a length cannot be told from a whole one';

/** A truncated reply must not look complete. */
const cut = (id: string, bytes: string): Row =>
  row(id, '9112 8', get(), { isRaw: true, answer: { parts: [bytes], end: 'closed' } }, ({ reply, talks, request }) => {
    if (reply && statusOf(reply) >= 500) return same();
    if (request !== undefined && isOld(request) && !/^content-length:/im.test(bytes)) return allowed(UNSEEN);
    if (reply?.isWhole) return breaks('half of a reply came as a whole one');
    return talks[0].ended === undefined ? breaks('the client waits for the rest, which never comes') : same();
  });

const waiting = (ms: number) => (to: Sender) => (talk: Talk) => {
  talk.write(get()(to));
  return talk.whole(1, ms);
};

export const TIME: Row[] = [
  early('early-401', '9112 9.5', '401 Unauthorized', [], HELD_BYTES),
  early('early-413', '9110 15.5.14', '413 Content Too Large', [], 900_000),
  row('continue-passed', '9110 10.1.1', holding(['Expect: 100-continue'], '', PET), { isRaw: true }, (seen) => {
    const judged = other(seen, '200');
    if (judged) return judged;
    if (!(seen.mark as Held).isInvited) return breaks('100 never came: a client waits until it loses patience');
    return headerOf(seen.request, 'expect') === undefined ? allowed('the gateway itself says 100') : same();
  }),
  early('continue-refused', '9110 10.1.1', '401 Unauthorized', ['Expect: 100-continue'], HELD_BYTES),
  row('early-left', '9112 9.3', leaving, { ...refusal('401 Unauthorized'), isAlone: true }, ({ arrived, mark }) => {
    const isThere = arrived.some((one) => targetOf(one).endsWith('/next'));
    if (!isThere) return breaks('the next request did not arrive as one: it went into the body of the refused one');
    return mark ? same() : breaks('the next request was not answered');
  }),
  cut('cut-length', reply('200 OK', [JSON_TYPE, 'Content-Length: 100']) + PET),
  cut('cut-chunk', `${reply('200 OK', ['Transfer-Encoding: chunked'])}ff\r\n${PET}`),
  lost('lost-get', get(), 2),
  lost('lost-get-kept', get(), 2, 4),
  lost('lost-post', post()),
  lost('lost-post-key', post(['Idempotency-Key: "probe-2"'])),
  lost('lost-patch', ask('PATCH', [JSON_TYPE], PET)),
  idle(4),
  idle(6),
  row(
    'pipelined',
    '9112 9.3.2',
    (to) => (talk) => {
      talk.write(get([], '/first')(to) + get([], '/second')(to));
      return talk.whole(2);
    },
    { isRaw: true, answer: (one) => ({ parts: [reply('200 OK', [], targetOf(one).replace(/.*\//, ''))] }) },
    (seen) => {
      const bodies = seen.finals.map(({ body }) => shown(body)).join();
      if (bodies === 'first,second') return same();
      const isEnded = seen.talks[0].ended !== undefined;
      if (bodies === 'first' && isEnded) return allowed('one is answered, then the connection is closed');
      if (seen.finals.length < 2) return breaks(`${bodies || 'neither'} was answered: ${nothing(seen)}`);
      return breaks(`the replies are ${bodies}`);
    },
  ),
  row('close-from-origin', '9112 6.3', get(), {
    answer: { parts: [reply('200 OK', ['Connection: close']), PET], gapMs: 20, end: 'closed' },
  }),
  idle(61),
  row(
    'reply-after-25',
    '9110 15.6.5',
    waiting(32_000),
    { isRaw: true, isIdle: true, isSlow: true, answer: { parts: [reply('200 OK', [], PET)], afterMs: 25_000 } },
    (seen) => {
      const { reply, arrived } = seen;
      if (arrived.length > 1) return breaks(`it arrived ${times(arrived.length)} while the first was under way`);
      if (reply && statusOf(reply) === 504) return allowed('the gateway does not wait for 25 s: 504');
      return other(seen, '200') ?? (reply.isWhole ? same() : breaks(nothing(seen)));
    },
  ),
  row('drip', '9112 6.3', waiting(30_000), {
    isIdle: true,
    isSlow: true,
    answer: { parts: [reply('200 OK', [`Content-Length: ${PET.length}`]), ...PET], gapMs: 500 },
  }),
];
