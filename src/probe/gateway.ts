/** `petstore probe gateway`: sends each case through the gateway, and looks at both ends. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { AMBIGUITY } from './ambiguity.ts';
import { breaks, judge, same } from './judgement.ts';
import { live, lived } from './lived.ts';
import { type Arrival, type Exchange, Origin } from './origin.ts';
import { REPLIES } from './replies.ts';
import type { Result, Run } from './report.ts';
import { REQUESTS } from './requests.ts';
import { get, OK, type Row, row, Sender } from './row.ts';
import { type Address, addressOf, Talk, unreachable } from './talk.ts';
import { METHODS, TARGETS } from './targets.ts';
import { TIME } from './time.ts';
import { type Message, shown } from './wire.ts';

const MAX_RUN_MS = 45_000;
const MAX_SLOW_RUN_MS = 105_000;
/** A gateway that has just been started, or that waits for the health of its origin, may take so long. */
const MAX_HELLO_MS = 5_000;
const CASES_AT_ONCE = 8;
/** In which a gateway notices that a connection has ended. */
const NOTICED_MS = 50;

const ROWS: readonly Row[] = [...REQUESTS, ...TARGETS, ...METHODS, ...REPLIES, ...TIME, ...AMBIGUITY];
export const CASES: readonly string[] = ROWS.map(({ id }) => id);

interface Settings {
  listen: { host: string; port: number };
  through: string;
  /** Undefined: all, but those that are slow. */
  only?: readonly string[];
  slow: boolean;
}

export async function probeGateway(
  { listen, through, only, slow }: Settings,
  onProgress: (done: number, total: number) => void,
): Promise<Run> {
  const rows = ROWS.filter((row) => (only === undefined ? slow || !row.isSlow : only.includes(row.id)));
  const probe = new Probe(addressOf(through), rows.some((row) => row.isSlow) ? MAX_SLOW_RUN_MS : MAX_RUN_MS);
  const at = new Date().toISOString();
  await probe.origin.listen(listen.host, listen.port);
  try {
    await probe.hello(listen);
    const found = new Map<string, Result>();
    const work = async (queue: Row[]) => {
      for (let row = queue.shift(); row !== undefined; row = queue.shift()) {
        found.set(row.id, await probe.try(row));
        onProgress(found.size, rows.length);
      }
    };
    const others = rows.filter((row) => !row.isIdle && !row.isAlone);
    const idle = rows.filter((row) => row.isIdle).map((row) => work([row]));
    await Promise.all([...idle, ...Array.from({ length: CASES_AT_ONCE }, () => work(others))]);
    for (const row of rows.filter((one) => one.isAlone)) {
      probe.origin.endAll(); // a gateway may try again on each connection that it has kept
      await live(NOTICED_MS);
      await work([row]);
    }
    const seconds = (Date.now() - Date.parse(at)) / 1_000;
    return { through, at, seconds, cases: rows.map(({ id }) => found.get(id)!), strangers: probe.origin.strangers };
  } finally {
    probe.origin.close();
  }
}

const HELLO = row('hello', '', get(), {}, () => same());

class Probe {
  readonly origin: Origin;
  /** With which the tokens of this run begin: nobody else can guess it. */
  readonly #run = `probe-${randomBytes(6).toString('hex')}`;
  readonly #address: Address;
  readonly #overAt: number;
  #exchanges = 0;

  constructor(address: Address, maxMs: number) {
    this.origin = new Origin(this.#run);
    this.#address = address;
    this.#overAt = lived() + maxMs;
  }

  /** Throws, in words, where no request reaches the origin at all. */
  async hello({ host, port }: Settings['listen']): Promise<void> {
    const { url } = this.#address;
    for (const overAt = performance.now() + MAX_HELLO_MS; ; await wait(250)) {
      const { arrived, reply, ended } = await this.#exchange(HELLO);
      if (arrived.length > 0 && reply !== undefined) return;
      if (performance.now() < overAt) continue;
      if (arrived.length > 0) throw new Error(`${url} reaches the probe, but brings no reply of it back`);
      if (reply === undefined) throw new Error(unreachable(url, ended));
      const to = `${host.includes(':') ? `[${host}]` : host}:${port}`;
      throw new Error(`${url} answers ${shown(reply.line)}, but does not reach the probe: point the gateway at ${to}`);
    }
  }

  async try(row: Row): Promise<Result> {
    const isOver = lived() > this.#overAt;
    const seen = isOver ? undefined : await this.#exchange(row);
    const judged = seen ? judge(row, seen) : breaks('not tried: the time for all cases together was over');
    const rule = judged.rule ?? (judged.verdict === 'allowed' ? row.allowed : undefined) ?? row.rule;
    const bytes = (messages: readonly Message[] = []) =>
      shown(messages.map(({ head, body }) => `${head}\r\n\r\n${body}`).join('\r\n\r\n'));
    return {
      id: row.id,
      verdict: judged.verdict,
      rule: /^\d/.test(rule) ? `RFC ${rule}` : rule,
      sent: shown(seen?.sent.join('') ?? ''),
      arrived: bytes(seen?.arrived),
      came: bytes(seen?.came),
      why: seen ? judged.why.replaceAll(seen.to.token, '…') : judged.why,
    };
  }

  async #exchange(row: Row) {
    const talks: Talk[] = [];
    const connect = () => {
      talks.push(new Talk(this.#address, true));
      return talks.at(-1)!;
    };
    const to = new Sender(`${this.#run}-${++this.#exchanges}`, this.#address, connect);
    const { arrived, answer } = exchangeOf(row, to.token);
    this.origin.expect(to.token, { arrived, answer });
    const [talk, said] = [connect(), row.send(to)];
    if (typeof said === 'string') talk.write(said);
    const mark = typeof said === 'string' ? await talk.whole(1) : await said(talk);
    for (const one of talks) one.close();
    const [finals, came] = [talks.flatMap((one) => one.finals), talks.flatMap((one) => one.replies)];
    const ends = { request: arrived[0], reply: finals[0], finals, came, ended: talk.ended };
    const isDirect = talks.some(({ port }) => port === arrived[0]?.port);
    return { ...ends, to, arrived, mark, isDirect, sent: talks.flatMap(({ sent }) => sent) };
  }
}

/** Each head of a reply is marked, so that one that comes to another case is known. */
function exchangeOf({ answer: said = OK }: Row, token: string): Exchange {
  const mark = (part: string) => part.replace(/^(HTTP\/1\.1 [2-5].*\r\n)/, `$1X-Probe: ${token}\r\n`);
  const given = (arrival: Arrival) => {
    if (typeof said === 'string') return { parts: [said] };
    return typeof said === 'function' ? said(arrival) : said;
  };
  const answer = (arrival: Arrival) => ({ ...given(arrival), parts: given(arrival).parts.map(mark) });
  return { arrived: [], answer };
}
