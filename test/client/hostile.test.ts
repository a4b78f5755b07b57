/** Replies of a server that means harm: they cost the client no more time than their length is worth. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Fetch, PetstoreClient } from '../../src/client/client.ts';
import { parseJson } from '../../src/client/ids.ts';
import { all, failure, harness, json, KEY, REX } from './front.ts';

const LEAST_TIMES = 2;
const MOST_TIMES = 8;

/** CPU of this process while it runs, the least of some times: only what the work takes is in all of them. */
async function cpuMs(run: () => unknown, allowedMs: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < LEAST_TIMES || (time < MOST_TIMES && least > allowedMs); time++) {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1_000);
  }
  return least;
}

/** Below this the rest of a call is more than what is measured. */
const FLOOR_MS = 40;

async function isLinear(name: string, from: number, to: number, run: (chars: number) => unknown): Promise<void> {
  let before = FLOOR_MS;
  for (let chars = from; chars <= to; chars *= 2) {
    const most = 3 * Math.max(before, FLOOR_MS);
    const ms = await cpuMs(() => run(chars), most);
    assert.ok(ms <= most, `${name}: ${chars} characters take ${ms} ms, half took ${before}`);
    before = ms;
  }
}

const filled = (part: string, chars: number) => part.repeat(Math.ceil(chars / part.length));

const BODIES = [
  '"\\',
  '\\"',
  '"',
  '"a',
  '1',
  '-',
  '-1',
  '1.',
  '1e',
  '"\n',
  '\\\n',
  '[',
  '{"a":',
  '123456789012345678 ',
];
for (const part of BODIES) {
  test(`a body of ${JSON.stringify(part)} again and again`, async (t) => {
    let body = '';
    const fetch: Fetch = async () => new Response(body);
    const { client } = await harness(t, () => 'lost', { fetch });
    await isLinear(part, 8_000, 512_000, (chars) => {
      body = `"${filled(part, chars)}`;
      return failure(client.getPet(1));
    });
  });
}

const HEADERS: [name: string, part: string][] = [
  ...['<', '<a', '<a>', '<a>;', '<a>; rel=', '<a> ', 'rel', ';', '<a?after=1>;rel=x,'].map((part) => ['link', part]),
  ...['"minute";q=1', '"minute";', '"minute";q=1 "minute";r=1;', ',', '1'].flatMap((part) => [
    ['ratelimit', part],
    ['ratelimit-policy', part],
  ]),
  ...['1', 'Mon, ', 'Mon, 1 ', '(', '9 '].flatMap((part) => [
    ['retry-after', part],
    ['date', part],
  ]),
  ...[';', 'a'].flatMap((part) => [
    ['content-type', part],
    ['location', part],
  ]),
  ['x-ratelimit-remaining', '1'],
] as [string, string][];
test('a header of one thing again and again', async (t) => {
  let headers = new Headers();
  const fetch: Fetch = async (_, { method }) =>
    method === 'GET' ? new Response('[]', { headers }) : new Response('x', { status: 429, headers });
  for (const [name, part] of HEADERS) {
    const { client } = await harness(t, () => 'lost', { fetch, retries: 0 });
    await isLinear(`${name}: ${part}`, 32_000, 256_000, async (chars) => {
      headers = new Headers({ date: 'Fri, 01 Jan 2027 00:00:00 GMT', 'retry-after': 'Fri, 01 Jan 2027 00:00:00 GMT' });
      headers.set(name, filled(part, chars));
      await client
        .listPets()
        .page()
        .catch(() => {});
      await client.createOrder(1).catch(() => {});
    });
  }
});

test('an address of many slashes', async () => {
  for (const part of ['/', '/v1', '/v1/', 'a/']) {
    await isLinear(part, 8_000, 512_000, (chars) => {
      new PetstoreClient({ baseUrl: `http://x/${filled(part, chars)}x`, key: KEY });
    });
  }
});

test('of JSON only integers beyond 2^53 − 1 are made strings, wherever they stand', () => {
  const long = '9007199254740993';
  const cases: [text: string, value: unknown][] = [
    [`{"a":${long},"b":[-${long}]}`, { a: long, b: [`-${long}`] }],
    [`"\\"${long}\\\\"`, `"${long}\\`],
    [`["${long}",${long}]`, [long, long]],
    ['[9007199254740991,0.12345678901234567890,1e0000000000000000002]', [9007199254740991, 0.12345678901234568, 100]],
    ['1e99999999999999999', Number.POSITIVE_INFINITY],
    [`"\u2028${long}"`, `\u2028${long}`],
  ];
  for (const [text, value] of cases) assert.deepEqual(parseJson(text), value, text);
  for (const text of [`"${long}`, `${long}"`, `"\\"${long}`, `-${long}-`, `0${long}x`])
    assert.throws(() => parseJson(text), SyntaxError, text);
});

test('pages never go in a circle, nor on from no id', async (t) => {
  const linkTo = (query: string) => json([REX], { Link: `</v1/pets${query}>; rel="next"` });
  const { client, front } = await harness(t, () => 'lost');
  front.fault = ({ path }) => linkTo(path.includes('after=7') ? '?after=5' : '?after=7');
  const error = await failure(all(client.listPets()));
  assert.deepEqual([error.code, error.status, error.tries, front.asked.length], ['bad_reply', 200, 1, 2]);
  for (const query of ['?after=', '?after', '?after=x', '?after=1.5', '?after=9223372036854775808', '?limit=1']) {
    front.fault = () => linkTo(query);
    assert.equal((await failure(client.listPets().page())).code, 'bad_reply', query);
  }
  front.asked.length = 0;
  front.fault = ({ path }) => {
    const after = Number(new URL(path, 'http://x').searchParams.get('after') ?? -3);
    return after < 3 ? linkTo(`?after=${after + 1}`) : json([]);
  };
  assert.equal((await all(client.listCategories())).length, 6, 'from −3 to 3');
  const links = [
    '<a?after=1>; title="next"; rel="prev", </v1/pets?after=2>; rel="next"',
    '</v1/pets?after=2>; REL=next',
    '</v1/pets?after=2> ; rel = "last next" ; title=x',
    '</v1/pets?after=2>;rel=next,<b?after=1>;rel=prev',
  ];
  for (const Link of links) {
    front.fault = () => json([REX], { Link });
    assert.equal((await client.listPets().page()).after, 2, Link);
  }
  for (const Link of ['</v1/pets?after=2>; rel="nextish"', '</v1/pets?after=2>', 'rel=next', '<a?after=2; rel=next']) {
    front.fault = () => json([REX], { Link });
    assert.equal((await client.listPets().page()).after, undefined, Link);
  }
});
