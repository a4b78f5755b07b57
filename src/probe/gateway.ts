/** `petstore probe gateway`: sends each case through the gateway, and looks at both ends. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { AMBIGUITY } from './ambiguity.ts';
import { judge } from './judgement.ts';
import { addedTo } from './kept.ts';
import { lived } from './lived.ts';
import { type Arrival, type Exchange, IDLE_MS, Origin } from './origin.ts';
import { REPLIES } from './replies.ts';
import { NO_TIME, type Result, type Run } from './report.ts';
import { REQUESTS } from './requests.ts';
import { breaks, get, type Judgement, OK, type Row, row, type Seen, Sender } from './row.ts';
import { type Address, addressOf, Talk, unreachable } from './talk.ts';
import { METHODS, TARGETS } from './targets.ts';
import { TIME } from './time.ts';
import { type Message, markOf, methodOf, shown, statusOf } from './wire.ts';

const MAX_RUN_MS = 45_000;
const MAX_SLOW_RUN_MS = 105_000;
/** The wait for a gateway that has just been started, or that waits for the health of its origin. */
const MAX_HELLO_MS = 5_000;
const CASES_AT_ONCE = 8;
/** Time for bytes to arrive that should not come behind a reply, or for a second request. */
const SETTLED_MS = 100;
/** The longest wait for a gateway to notice that its connections have ended. */
const MAX_NOTICE_MS = 500;

const ROWS: readonly Row[] = [...REQUESTS, ...TARGETS, ...METHODS, ...REPLIES, ...TIME, ...AMBIGUITY];
export const CASES: readonly string[] = ROWS.map(({ id }) => id);

interface Settings {
  listen: { host: string; port: number };
  through: string;
  /** Ids of cases; undefined: all that are not slow. */
  only?: readonly string[];
  slow: boolean;
}

export async function probeGateway(
  { listen, through, only, slow }: Settings,
  onProgress: (done: number, total: number) => void,
): Promise<Run> {
  const rows = ROWS.filter((row) => (only === undefined ? slow || !row.isSlow : only.includes(row.id)));
  const probe = new Probe(listen, addressOf(through), rows.some((row) => row.isSlow) ? MAX_SLOW_RUN_MS : MAX_RUN_MS);
  const at = new Date().toISOString();
  const began = performance.now();
  await probe.origin.listen(listen.host, listen.port);
  try {
    await probe.hello();
    const found = new Map<string, Result>();
    const work = async (queue: Row[]) => {
      for (let row = queue.shift(); row !== undefined; row = queue.shift()) {
        found.set(row.id, await probe.try(row));
        onProgress(found.size, rows.length);
      }
    };
    const others = rows.filter((row) => !row.isIdle && !row.isAlone);
    const idle = rows.filter((row) => row.isIdle).map((row) => work([row]));
    const all = Promise.all([...idle, ...Array.from({ length: CASES_AT_ONCE }, () => work(others))]);
    await Promise.race([all, probe.lost]); // ends the run if the gateway is gone
    for (const row of rows.filter((one) => one.isAlone)) {
      await probe.origin.endAll(MAX_NOTICE_MS); // a gateway may try again on each connection that it has kept
      await work([row]);
    }
    const seconds = (performance.now() - began) / 1_000;
    const cases = rows.map((row) => found.get(row.id) ?? probe.untried(row));
    const error = probe.gone && `the gateway was lost after ${probe.seen} of ${rows.length} cases: ${probe.gone}`;
    return { through, at, seconds, cases, strangers: probe.origin.strangers, error };
  } finally {
    probe.close();
  }
}

const HELLO = row('hello', '', get());

class Probe {
  readonly origin: Origin;
  /** The reason why the gateway is gone, and a promise that resolves when it is. */
  gone?: string;
  readonly lost: Promise<void>;
  /** The number of cases in which a byte came to one end or the other. */
  seen = 0;
  /** The beginning of all tokens of this run: nobody else can guess it. */
  readonly #run = `probe-${randomBytes(6).toString('hex')}`;
  readonly #listen: Settings['listen'];
  readonly #address: Address;
  readonly #overAt: number;
  readonly #added = new Map<string, string>();
  readonly #addedToRequests = new Map<string, string>();
  #delayMs = 0;
  readonly #talks = new Set<Talk>();
  #exchanges = 0;
  #look?: Promise<void>;
  #lose = () => {};

  constructor(listen: Settings['listen'], address: Address, maxMs: number) {
    this.origin = new Origin(this.#run);
    this.lost = new Promise((resolve) => (this.#lose = resolve));
    this.#listen = listen;
    this.#address = address;
    this.#overAt = lived() + maxMs;
  }

  close(): void {
    this.origin.close();
    for (const talk of this.#talks) talk.close();
  }

  /** Throws, in words, if no request reaches the origin at all. */
  async hello(): Promise<void> {
    const { url } = this.#address;
    for (const overAt = performance.now() + MAX_HELLO_MS; ; await wait(250)) {
      const begun = lived();
      const { arrived, reply, talks } = await this.#exchange(HELLO);
      if (arrived.length > 0 && reply !== undefined) {
        this.#delayMs = Math.max(0, lived() - begun - SETTLED_MS);
        this.origin.idleMs = IDLE_MS + this.#delayMs;
        return;
      }
      if (performance.now() < overAt) continue;
      if (arrived.length > 0) throw new Error(`${url} reaches the probe, but does not pass its reply back`);
      if (reply === undefined || statusOf(reply) === 0) throw new Error(unreachable(url, talks[0]));
      const { host, port } = this.#listen;
      const to = `${host.includes(':') ? `[${host}]` : host}:${port}`;
      throw new Error(`${url} answers ${shown(reply.line)}, but does not reach the probe: point the gateway at ${to}`);
    }
  }

  async try(row: Row): Promise<Result> {
    if (this.gone !== undefined || lived() > this.#overAt) return this.untried(row);
    const seen = await this.#exchange(row);
    if (seen.arrived.length + seen.came.length > 0) this.seen++;
    else await this.#isGone();
    return resultOf(row, judge(row, seen), seen);
  }

  untried(row: Row): Result {
    return resultOf(row, breaks(this.gone === undefined ? NO_TIME : 'not reached: the gateway is gone'));
  }

  /** Called after a case in which no byte came to either end: is the gateway gone, or was it this case alone? */
  #isGone(): Promise<void> {
    this.#look ??= this.hello()
      .catch((error: Error) => {
        this.gone = error.message;
        this.#lose();
      })
      .finally(() => (this.#look = undefined));
    return this.#look;
  }

  async #exchange(row: Row): Promise<Seen> {
    const talks: Talk[] = [];
    const connect = () => {
      const talk = new Talk(this.#address, true);
      this.#talks.add(talk);
      return talks[talks.push(talk) - 1];
    };
    const keepIdle: Sender['keepIdle'] = (work) => this.origin.keepIdle(work);
    const to = new Sender(`${this.#run}-${++this.#exchanges}`, this.#address, this.#delayMs, { connect, keepIdle });
    const { arrived, answer } = exchangeOf(row, to.token);
    this.origin.expect(to.token, { arrived, answer });
    const [talk, said] = [connect(), row.send(to)];
    if (typeof said === 'string') talk.write(said);
    const mark = typeof said === 'string' ? await talk.whole(1) : await said(talk);
    const isMore = (one: Talk) => one.surplus(one.requests.length) !== '';
    await Promise.all(talks.map((one) => one.until(() => isMore(one), SETTLED_MS)));
    for (const one of talks) {
      one.close();
      this.#talks.delete(one);
    }
    const [finals, came] = [talks.flatMap((one) => one.finals), talks.flatMap((one) => one.replies)];
    const pairs = talks.flatMap(({ requests, finals }) =>
      requests.map((sent, at) => ({ sent, arrival: arrivalOf(sent, arrived), reply: finals[at] })),
    );
    for (const { sent, arrival, reply } of pairs) {
      for (const [name, value] of arrival && !row.isAmbiguous ? addedTo(sent, arrival) : [])
        this.#addedToRequests.set(name, value);
      const isOrigins = arrival?.answered !== undefined && reply !== undefined && markOf(reply) !== undefined;
      for (const [name, value] of isOrigins ? addedTo(arrival.answered!, reply) : []) this.#added.set(name, value);
    }
    const isDirect = talks.some(({ ends }) => ends !== undefined && ends === arrived[0]?.ends);
    const first = { request: arrived[0], reply: finals[0] };
    const added = { added: this.#added, addedToRequests: this.#addedToRequests };
    return { to, talks, arrived, ...first, finals, came, pairs, ...added, isDirect, mark };
  }
}

const arrivalOf = (sent: Message, arrived: readonly Arrival[]): Arrival | undefined =>
  arrived.find((one) => markOf(one) === markOf(sent)) ?? (arrived.length === 1 ? arrived[0] : undefined);

function resultOf(row: Row, judged: Judgement, seen?: Seen): Result {
  const { verdict, why } = judged;
  const rule = judged.rule ?? (verdict === 'allowed' ? row.allowed : undefined) ?? row.rule;
  const bytes = (messages: readonly Message[] = []) =>
    messages.map(({ head, body }) => `${head}\r\n\r\n${body}`).join('\r\n\r\n');
  const came = seen?.talks.map(({ replies, rest }) => bytes(replies) + rest).filter((text) => text !== '');
  return {
    id: row.id,
    verdict,
    rule: /^\d/.test(rule) ? `RFC ${rule}` : rule,
    sent: shown(seen?.talks.map(({ sent }) => sent).join('') ?? ''),
    arrived: shown(bytes(seen?.arrived)),
    came: shown(came?.join('\r\n\r\n') ?? ''),
    why: seen ? why.replaceAll(seen.to.token, '…') : why,
  };
}

/** Each head of a reply carries the mark of its request, so that a reply to another request is noticed. */
function exchangeOf({ answer: said = OK }: Row, token: string): Exchange {
  const answer = (arrival: Arrival) => {
    const given = typeof said === 'function' ? said(arrival) : typeof said === 'string' ? { parts: [said] } : said;
    const asked = markOf(arrival) ?? '';
    const line = `X-Probe: ${/^probe-[\da-f]+-\d+\.\d+$/.test(asked) ? asked : token}\r\n`;
    const bodyless = methodOf(arrival) === 'HEAD' ? /\r\n\r\n.*/s : /$/;
    const mark = (part: string) =>
      part.replace(/^(HTTP\/1\.1 [2-5].*\r\n)/, `$1${line}`).replace(bodyless, (end) => end.slice(0, 4));
    return { ...given, parts: given.parts.map(mark) };
  };
  return { arrived: [], answer };
}
