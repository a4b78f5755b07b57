/**
 * `petstore probe service` (G): the changes that a gateway makes to a running petstore. Each promise is tested through
 * the gateway; if it fails, also without it.
 */
import type { Result, Run } from './report.ts';
import { addressOf, Talk, unreachable } from './talk.ts';
import { headerOf, linesOf, shown, statusOf } from './wire.ts';

/** The most requests that the cases before the last take, if each is tried again without the gateway. */
const COST_REQUESTS = 40;
/** The last case uses the minute up: a key with more would keep the service busy. */
const MAX_PER_MINUTE = 1_000;
const MAX_SAFE_PLUS_2 = '9007199254740993';

type Window = 'minute' | 'day';
type Answered = Awaited<ReturnType<typeof ask>>;
type Ask = (method: string, path: string, lines?: string[], body?: string) => Promise<Answered>;
/** The fault, in words; undefined if there is none. */
type Check = (ask: Ask, direct: Ask) => Promise<string | undefined>;

/** One request on a connection of its own. */
async function ask(url: string, key: string, method: string, path: string, lines: string[] = [], body?: string) {
  const address = addressOf(url.replace(/\/v1\/?$/, ''));
  const talk = new Talk(address, false);
  const about = body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`];
  const head = [`Host: ${address.authority}`, `Authorization: Bearer ${key}`, ...lines, ...about, '', body ?? ''];
  talk.write([`${method} ${address.prefix}${path} HTTP/1.1`, ...head].join('\r\n'));
  await talk.whole(1);
  talk.close();
  const [reply] = talk.finals;
  if (reply === undefined) throw new Error(unreachable(url, talk));
  const sentTo = new URL(`${address.prefix}${path}`, url);
  const json = /^\s*[[{]/.test(reply.body) ? parsed(reply.body) : undefined;
  const followed = (link: string) => pathOf(link, sentTo, address.prefix);
  return { status: statusOf(reply), reply, json, of: (name: string) => headerOf(reply, name), followed };
}

/** The path to which a link of a reply leads, as `ask` takes it; undefined if it leads to another place. */
function pathOf(link: string, sentTo: URL, prefix: string): string | undefined {
  if (!URL.canParse(link, sentTo.href)) return undefined;
  const { origin, pathname, search } = new URL(link, sentTo);
  const isBelow = origin === sentTo.origin && pathname.startsWith(`${prefix}/`);
  return isBelow ? pathname.slice(prefix.length) + search : undefined;
}

const parsed = (text: string) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const LIST = '/v1/pets?limit=1';
const pet = (categoryId: string) => `{"name":"probe","categoryId":${categoryId}}`;
const linkOf = (link = '', rel: string) => new RegExp(`<([^>]*)>\\s*;\\s*rel="${rel}"`).exec(link)?.[1];
const numberOf = (text = '', window: Window, of: 'q' | 'r' | 't') =>
  Number(new RegExp(`"${window}"[^,]*;${of}=(\\d+)`).exec(text)?.[1]);

const check = (id: string, rule: string, look: Check) => ({ id, rule, look });

const CHECKS = [
  check('tokens', 'RFC 9110 9.2.2', async (ask, direct) => {
    const minute = async () => {
      const told = (await direct('GET', LIST)).of('ratelimit');
      return { left: numberOf(told, 'minute', 'r'), seconds: numberOf(told, 'minute', 't') };
    };
    for (let tries = 1; ; tries++) {
      const before = await minute();
      for (let n = 0; n < 3; n++) await ask('GET', LIST);
      const after = await minute();
      if (after.seconds > before.seconds && tries === 1) continue; // the minute has ended, and another begins full
      const taken = before.left - after.left - 1;
      return taken === 3 ? undefined : `3 requests took ${taken} tokens`;
    }
  }),
  check('errors-json', 'RFC 9110 15.5', async (ask) => {
    const large = await ask('POST', '/v1/pets', [], `{"name":"${'a'.repeat(70_000)}"}`);
    const long = await ask('GET', `/v1/pets?${'a'.repeat(3_000)}`);
    const lines = [1, 2, 3, 4].map((n) => `X-Large-${n}: ${'a'.repeat(5_000)}`);
    const wide = await ask('GET', LIST, lines);
    const empty = await ask('POST', '/v1/pets', [], '{}');
    const nowhere = await ask('GET', '/v1/nowhere');
    const told = { 400: empty, 404: nowhere, 413: large, 414: long, 431: wide };
    const isOther = (status: number, one: Answered) =>
      one.status !== status || one.json?.status !== status || !/^application\/json/.test(one.of('content-type') ?? '');
    const wrong = Object.entries(told).filter(([status, one]) => isOther(Number(status), one));
    const list = wrong.map(([status, { reply }]) => `in place of ${status} as JSON came ${shown(reply.line)}`);
    return list.length === 0 ? undefined : list.join('; ');
  }),
  check('replay', 'the Idempotency-Key header', async (ask) => {
    const lines = [`Idempotency-Key: "probe-${process.hrtime.bigint()}"`];
    const first = await ask('POST', '/v1/pets', lines, pet('1'));
    const second = await ask('POST', '/v1/pets', lines, pet('1'));
    if (first.status !== 201) return `a POST with an Idempotency-Key is answered ${first.status}`;
    const location = first.of('location');
    if (!/^\/v1\/pets\/\d+$/.test(first.followed(location ?? '') ?? ''))
      return `Location is ${shown(location ?? 'gone')}`;
    if (second.reply.body !== first.reply.body) return 'the same POST made another animal';
    return second.of('idempotent-replayed') === 'true' ? undefined : 'the replay is not flagged';
  }),
  check('int64', 'RFC 8259 6', async (ask) => {
    const { reply } = await ask('POST', '/v1/pets', [], pet(MAX_SAFE_PLUS_2));
    return reply.body.includes(MAX_SAFE_PLUS_2) ? undefined : `2^53 + 1 came as ${shown(reply.body)}`;
  }),
  check('paging', 'RFC 8288 3', async (ask) => {
    const first = await ask('GET', LIST);
    const next = linkOf(first.of('link'), 'next');
    if (next === undefined) return 'Link did not come';
    const path = first.followed(next);
    if (path === undefined) return `Link leads to ${shown(next)}`;
    const second = await ask('GET', path);
    return second.status === 200 && second.reply.body !== first.reply.body ? undefined : 'Link leads to no other page';
  }),
  check('deprecation', 'RFC 9745 2', async (ask, direct) => {
    const [one, own] = [await ask('GET', '/v1/pets/1'), await direct('GET', '/v1/pets/1')];
    for (const name of ['deprecation', 'sunset']) {
      const is = one.of(name);
      if (is === undefined || is !== own.of(name)) return `${name} is ${shown(is ?? 'gone')}`;
    }
    return linkOf(one.of('link'), 'successor-version') ? undefined : 'Link to the successor is gone';
  }),
  check('conditional', 'RFC 9110 13.1.2', async (ask) => {
    const tag = (await ask('GET', LIST)).of('etag');
    if (tag === undefined) return 'there is no ETag';
    const again = await ask('GET', LIST, [`If-None-Match: ${tag}`]);
    if (again.status !== 304 || again.of('etag') !== tag) return `${again.status} came in place of 304`;
    const unseen = await ask('GET', LIST, ['If-Match: "probe"']);
    return unseen.status === 412 ? undefined : `${unseen.status} came in place of 412 with If-Match`;
  }),
  check('request-id', 'RFC 9110 5.3', async (ask) => {
    const ids = [];
    for (let n = 0; n < 2; n++) ids.push(...linesOf((await ask('GET', LIST)).reply, 'x-request-id'));
    const isOneEach = ids.length === 2 && ids[0] !== ids[1];
    return isOneEach ? undefined : `two requests have these ids: ${shown(ids.join(', '))}`;
  }),
  check('limit-429', 'RFC 6585 4', async (ask, direct) => {
    for (let n = 0; n <= MAX_PER_MINUTE; n++) {
      if ((await direct('GET', LIST)).status === 200) continue; // a slow gateway might never use the minute up
      const { status, json, of, reply } = await ask('GET', LIST);
      if (status === 200) continue; // the minute has ended meanwhile
      if (status !== 429) return `${shown(reply.line)} came in place of 429`;
      if (json?.code !== 'rate_limited') return 'the body of the 429 does not say why';
      return Number(of('retry-after')) >= 1 ? undefined : 'Retry-After is gone';
    }
    return 'no 429 came';
  }),
];

interface ServiceSettings {
  direct: string;
  through: string;
  key: string;
}

/** The requests that the key may use up in this minute. Throws, in words, if it does not fit. */
function requestsLeft(direct: string, { status, json, reply, of }: Answered): number {
  if (status === 401 || status === 429) throw new Error(`${direct} refuses the key: ${shown(json?.message ?? '')}`);
  const windows = (['minute', 'day'] as const).map((name) => {
    const [policy, rate] = [of('ratelimit-policy'), of('ratelimit')];
    const [left, seconds] = [numberOf(rate, name, 'r'), numberOf(rate, name, 't')];
    return { name, limit: numberOf(policy, name, 'q'), left, seconds };
  });
  const [minute, day] = windows;
  if (Number.isNaN(minute.limit)) throw new Error(`${direct} is no petstore: it answers ${shown(reply.line)}`);
  if (minute.limit > MAX_PER_MINUTE) {
    throw new Error(`this key has ${minute.limit} requests a minute to use up: give one of a small plan, such as free`);
  }
  const least = { minute: COST_REQUESTS + 1, day: minute.limit }; // one is spent already
  const small = windows.find(({ name, limit }) => limit < least[name]);
  if (small !== undefined) {
    const [has, needs] = [`${small.limit} requests a ${small.name}`, least[small.name]];
    throw new Error(`this key has ${has}, and ${needs} are needed: give one of another plan, such as free`);
  }
  for (const [{ left, seconds }, needs] of [
    [minute, COST_REQUESTS],
    [day, minute.left],
  ] as const) {
    if (left < needs)
      throw new Error(`this key has ${left} requests left, and ${needs} are needed: try again in ${seconds} s`);
  }
  return minute.left;
}

/** `announce` is called before requests are spent and animals made. */
export async function probeService(
  { direct, through, key }: ServiceSettings,
  announce: (words: string) => Promise<void>,
  onProgress: (done: number, total: number) => void,
): Promise<Run> {
  const asking =
    (url: string): Ask =>
    (...words) =>
      ask(url, key, ...words);
  const left = requestsLeft(direct, await asking(direct)('GET', LIST));
  await announce(`This uses up the minute of the key (${left} requests), and makes up to 4 animals called "probe".`);
  const at = new Date().toISOString();
  const cases: Result[] = [];
  for (const { id, rule, look } of CHECKS) {
    const wrong = await look(asking(through), asking(direct));
    const isAlways =
      wrong !== undefined && id !== 'tokens' && (await look(asking(direct), asking(direct))) !== undefined;
    const verdict = wrong === undefined || isAlways ? 'same' : 'breaks';
    const why = isAlways ? `the same without the gateway: ${wrong}` : (wrong ?? '');
    cases.push({ id, verdict, rule, sent: '', arrived: '', came: '', why });
    onProgress(cases.length, CHECKS.length);
  }
  return { through, at, seconds: (Date.now() - Date.parse(at)) / 1_000, cases, strangers: 0 };
}
