/**
 * Breaks the promises of the small edition, one function each: it starts the program on a directory of its own, does to
 * it what happens to a service in the world, and says whether the promise was kept. README.md beside it is the list.
 *
 *   node docs/small/break.ts [NAME …] [--full | --of FILE]     (before Node 22.18: npx tsx docs/small/break.ts)
 *
 * Without names it tries all. With `--full` it does the same to the full service, which keeps every promise, and with
 * `--of` to a copy of the small edition that you have changed. It ends with 1 if a promise is broken.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { EXERCISES } from './exercises.ts';
import {
  type Break,
  Broken,
  dataFile,
  directory,
  moduleOf,
  named,
  operate,
  options,
  removeAll,
  seen,
  send,
  start,
} from './program.ts';

const PET = '{"name":"Rex","categoryId":1}';
const JSON_OF = (length: number) => `Content-Type: application/json\r\nContent-Length: ${length}\r\n`;
/** What remains of the day's limit, and the seconds until it ends. */
function dayOf(reply: { headers: Headers }) {
  const [, left, seconds] = /"day";r=(\d+);t=(\d+)/.exec(reply.headers.get('ratelimit')!) ?? [];
  return { left: Number(left), seconds: Number(seconds) };
}
/** The least time that a page at the end of so many animals takes, in ms. */
async function pageTime(animals: number): Promise<number> {
  const dir = directory();
  const rows = Array.from({ length: animals }, (_, index) => ({ name: 'Rex', categoryId: 1, id: index + 1 }));
  if (options.full) {
    const file = join(directory(), 'animals.jsonl');
    writeFileSync(file, rows.map(({ id, ...pet }) => `${JSON.stringify(pet)}\n`).join(''));
    await operate('import', file, '--data', dir);
  } else {
    const log = rows.map((row) => `${JSON.stringify({ pet: { ...row, status: 'available' } })}\n`);
    writeFileSync(join(dir, 'petstore.log'), log.join(''));
  }
  const { request, kill } = await start(dir);
  const times: number[] = [];
  for (let n = 0; n < 40; n++) {
    const before = performance.now();
    await request(`GET /v1/pets?after=${animals - 20}`);
    times.push(performance.now() - before);
  }
  await kill();
  return Math.min(...times);
}
const startsAgain = (dir: string, key: string) =>
  start(dir, { key }).then(
    () => seen(true, 'it starts again'),
    (error: Error) => seen(false, error.message),
  );

/** Loaded first: SIGWINCH sets the machine's clock, as the program sees it, five years ahead. */
const CLOCK = moduleOf(`const now = Date.now; let ahead = 0;
  Date.now = () => now() + ahead; 
  process.on('SIGWINCH', () => { ahead = 5 * 366 * 86_400_000; process.stderr.write('JUMPED'); });`);
/** Loaded first: each request has another address. SIGWINCH lets two minutes pass, and prints the bytes in use. */
const ADDRESSES = moduleOf(`import { Server } from 'node:net'; import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  let asked = 0; let ahead = 0;
  const get = () => [10, ++asked >> 16, (asked >> 8) & 255, asked & 255].join('.');
  const { emit } = Server.prototype;
  Server.prototype.emit = function (event, ...args) {
    if (event === 'connection') Object.defineProperty(args[0], 'remoteAddress', { get });
    return emit.call(this, event, ...args);
  };
  for (const clock of [Date, performance]) {
    const now = clock.now.bind(clock);
    clock.now = () => now() + ahead;
  }
  setFlagsFromString('--expose-gc');
  process.on('SIGWINCH', () => {
    ahead += 120_000;
    runInNewContext('gc')();
    process.stderr.write('USED ' + process.memoryUsage().heapUsed + ' ');
  });`);

async function afterClockJump(line: string) {
  const { request, child, stderr } = await start(directory(), { first: CLOCK });
  await request('POST /v1/pets', PET);
  child.kill('SIGWINCH');
  while (!stderr().includes('JUMPED')) await wait(5);
  return request(line);
}

const BREAKS: Record<string, Break> = {
  ...EXERCISES,

  async 'changed-byte'() {
    const dir = directory();
    const { request, kill, key } = await start(dir);
    await request('POST /v1/pets', PET);
    await kill();
    writeFileSync(dataFile(dir), readFileSync(dataFile(dir), 'utf8').replace('Rex', 'Max'));
    const again = await start(dir, { key }).catch((error: Error) => error);
    if (again instanceof Error) return seen(true, again.message);
    return seen(false, `Rex is now ${(await again.request('GET /v1/pets')).text}`);
  },

  async 'full-disk'() {
    const dir = directory();
    const { request, stop, key } = await start(dir, { before: ['sh', '-c', 'ulimit -f 64; exec "$@"', 'sh'] });
    const large = JSON.stringify({ name: '\u{1f63a}'.repeat(255), categoryId: 1 });
    let reply = await request('POST /v1/pets', large);
    for (let n = 0; n < 55 && reply.status === 201; n++) reply = await request('POST /v1/pets', large);
    await stop();
    const { isKept, saw } = await startsAgain(dir, key);
    return seen(isKept && reply.status === 507, `${reply.status}, then ${saw}`);
  },

  async 'two-servers'() {
    const dir = directory();
    const first = await start(dir);
    const second = await start(dir, { key: first.key }).catch((error: Error) => error);
    if (second instanceof Error) return seen(true, second.message);
    const [one, other] = [await first.request('POST /v1/pets', PET), await second.request('POST /v1/pets', PET)];
    return seen(false, `both gave the same id: ${one.text} ${other.text}`);
  },

  async 'log-grows'() {
    const dir = directory();
    const { request, kill } = await start(dir);
    await request('POST /v1/pets', PET);
    for (let id = 1; id <= 25; id++) {
      await request('POST /v1/store/orders', '{"petId":1}');
      await request(`PATCH /v1/store/orders/${id}`, '{"status":"cancelled"}');
    }
    await kill();
    const before = statSync(dataFile(dir)).size;
    await operate('compact', '--data', dir);
    const after = statSync(dataFile(dir)).size;
    return seen(after < before, `the history has ${before} bytes, and after a compaction ${after}`);
  },

  async 'page-cost'() {
    const [few, many] = [await pageTime(100), await pageTime(500_000)];
    const times = `${few.toFixed(1)} ms among 100 animals, ${many.toFixed(1)} ms among 500,000`;
    return seen(many < 5 * few, `a page of 20 takes ${times}`);
  },

  async clock() {
    const { left: after } = dayOf(await afterClockJump('GET /v1/pets'));
    return seen(after === 998, `after two requests ${after} of 1000 remain, because the clock was set ahead between`);
  },

  async gone() {
    const { status } = await afterClockJump('GET /v1/pets/1');
    return seen(status === 410, `after its removal date the operation answers ${status}`);
  },

  async ban() {
    const { request } = await start(directory());
    const codes: string[] = [];
    const twenty = () => Promise.all(Array.from({ length: 20 }, () => request('GET /v1/pets')));
    for (let n = 0; n < 19; n++)
      codes.push(...(await twenty()).map(({ text }) => /"code":"(\w+)"/.exec(text)?.[1] ?? 'ok'));
    return seen(codes.includes('key_banned'), `after ${codes.length} requests the last reply was: ${codes.at(-1)}`);
  },

  async addresses() {
    const { request, child, stderr } = await start(directory(), { first: ADDRESSES });
    const ask = () => request('GET /v1/pets', undefined, { authorization: '' });
    const fifty = () => Promise.all(Array.from({ length: 50 }, ask));
    const twoMinutesOn = async () => {
      const { length } = stderr();
      child.kill('SIGWINCH');
      while (!/USED \d+ $/.test(stderr().slice(length))) await wait(5);
      return Number(/(\d+) $/.exec(stderr())![1]);
    };
    const used = async () => {
      await twoMinutesOn();
      await ask(); // no timer is needed: the next request may drop what has ended
      return twoMinutesOn();
    };
    for (let n = 0; n < 20; n++) await fifty();
    const before = await used();
    for (let n = 0; n < 100; n++) await fifty();
    const each = Math.round(((await used()) - before) / 5_000);
    return seen(each < 150, `each of 5,000 addresses takes ${each} bytes, two minutes after its only request`);
  },

  async 'duplicate-member'() {
    const { request } = await start(directory());
    const { status, text } = await request('POST /v1/pets', '{"name":"Rex","name":"Max","categoryId":1}');
    return seen(status === 400, `a body with two names is answered ${status} ${text}`);
  },

  async message() {
    const { request } = await start(directory());
    const { text } = await request('POST /v1/pets', JSON.stringify({ name: 'x'.repeat(256), categoryId: 1 }));
    return seen(text.includes('256'), `256 characters are refused so: ${text}`);
  },

  async 'endless-body'() {
    const { request, port, raw } = await start(directory());
    const head = raw('POST /v1/pets', 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n');
    const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const came = await send(port, head + piece.repeat(16), 1, () => request('GET /v1/pets').then(() => {}));
    return seen(came.includes(' 413 '), `after 1 MiB of a body that goes on: ${came.split('\r\n')[0] || 'nothing'}`);
  },

  async 'two-hosts'() {
    const { port, raw } = await start(directory());
    const came = await send(port, raw('GET /v1/pets', 'Host: y\r\n'), 1);
    return seen(came.includes(' 400 '), `a request for two hosts is answered ${came.split('\r\n')[0]}`);
  },

  async 'not-http'() {
    const { port } = await start(directory());
    const came = await send(port, 'nonsense\r\n\r\n', 1);
    return seen(came.includes('"bad_request"'), `bytes that are not HTTP get ${JSON.stringify(came.slice(0, 60))}`);
  },

  async overtaking() {
    const { port, raw } = await start(directory());
    const both = raw('POST /v1/pets', JSON_OF(PET.length)) + PET + raw('GET /v1/pets');
    const came = await send(port, both, 2);
    return seen(/\[\{.*Rex/.test(came), `a list sent after a create: ${came.split('\r\n').at(-1)}`);
  },

  async flood() {
    const { port, raw } = await start(directory());
    const came = await send(port, (raw('POST /v1/pets', JSON_OF(PET.length)) + PET).repeat(50), 50);
    const replies = came.match(/HTTP\/1.1 201/g)?.length ?? 0;
    return seen(replies < 50, `of 50 creates in one packet ${replies} were begun and answered`);
  },

  async 'last-request'() {
    const { request, child, port, raw } = await start(directory());
    const came = await send(port, raw('POST /v1/pets', JSON_OF(PET.length)), 1, async (socket) => {
      await request('GET /v1/pets');
      child.kill('SIGTERM');
      await wait(200);
      socket.write(PET);
    });
    return seen(
      came.includes(' 201 '),
      `a request that was under way at SIGTERM got ${came.split('\r\n')[0] || 'nothing'}`,
    );
  },

  async 'read-only-key'() {
    const made = await operate('keys', 'create', '--plan', 'free', '--read-only', '--data', directory());
    return seen(/ps_live_/.test(made), `a key that only reads: ${made === '' ? 'there is none' : 'made'}`);
  },

  async categories() {
    const { status } = await (await start(directory())).request('GET /v1/categories');
    return seen(status === 200, `the categories: ${status}`);
  },

  async 'change-pet'() {
    const { request } = await start(directory());
    await request('POST /v1/pets', PET);
    const { status } = await request('PATCH /v1/pets/1', '{"name":"Max"}');
    const { status: removed } = await request('DELETE /v1/pets/1');
    return seen(status === 200 && removed === 204, `a new name: ${status}; its removal: ${removed}`);
  },

  async preflight() {
    const { status } = await (await start(directory())).request('OPTIONS /v1/pets', undefined, { authorization: '' });
    return seen(status === 204, `a browser's preflight, without a key: ${status}`);
  },

  async health() {
    const { status } = await (await start(directory())).request('GET /readyz');
    return seen(status === 200, `GET /readyz: ${status}`);
  },
};

/** A program that does not start, or does something else that nobody expects, breaks this promise; the others are tried. */
async function report(name: string): Promise<void> {
  const { isKept, saw } = await BREAKS[name]().catch((error: Error) =>
    seen(false, error instanceof Broken ? error.message : `${error.stack}`),
  );
  if (!isKept) process.exitCode = 1;
  console.log(`${name}: ${isKept ? 'kept' : 'broken'}: ${saw.trim()}`);
}

const unknown = named.find((name) => !Object.hasOwn(BREAKS, name));
if (unknown !== undefined) {
  console.error(`there is no ${unknown}: there are ${Object.keys(BREAKS).join(', ')}`);
  process.exit(2);
}
try {
  const wanted = named.length > 0 ? named : Object.keys(BREAKS);
  for (let next = 0; next < wanted.length; next += 4) await Promise.all(wanted.slice(next, next + 4).map(report));
} finally {
  await removeAll();
}
