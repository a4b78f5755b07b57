/**
 * Breaks the promises of the small edition, one function each: it starts the program on a directory of its own, does to
 * it what happens to a service in the world, and says whether the promise was kept. README.md beside it is the list.
 *
 *   node docs/small/break.ts [NAME …] [--full | --of FILE]     (before Node 22.18: npx tsx docs/small/break.ts)
 *
 * Without names it tries all. With `--full` it does the same to the full service, which keeps every promise, and with
 * `--of` to a copy of the small edition that you have changed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { positionals: named, values: options } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean', default: false }, of: { type: 'string' } },
});
const ours = fileURLToPath(new URL(options.full ? '../../src/main.ts' : 'petstore.ts', import.meta.url));
const source = options.of === undefined ? ours : resolve(options.of);
const command = [process.execPath, ...process.execArgv];
const words = [source, ...(options.full ? ['serve', '--first-key', 'free'] : [])];

interface Seen {
  isKept: boolean;
  saw: string;
}
type Break = () => Promise<Seen>;
const seen = (isKept: boolean, saw: string): Seen => ({ isKept, saw });

/** These are killed and removed before this process ends. */
const processes: ChildProcess[] = [];
const directories: string[] = [];

function directory(): string {
  directories.push(mkdtempSync(join(tmpdir(), 'petstore-break-')));
  return directories.at(-1)!;
}

interface StartOptions {
  /** The key that an earlier start has printed. */
  key?: string;
  /** A module that is loaded first, as text: it changes the world that the program finds. */
  first?: string;
  /** The words before the program's own, such as a shell with a limit. */
  before?: string[];
}

/** Starts the program on a directory and waits until it listens. Throws where it ends before that. */
async function start(dir: string, { key, first, before = [] }: StartOptions = {}) {
  const loads = first === undefined ? [] : ['--import', `data:text/javascript,${encodeURIComponent(first)}`];
  const [file, ...args] = [...before, ...command, ...loads, ...words, '--port', '0', '--data', dir];
  const child = spawn(file, args);
  processes.push(child);
  const ended = once(child, 'close').then(() => {});
  let [stdout, stderr] = ['', ''];
  child.stderr.on('data', (bytes) => (stderr += bytes));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (bytes) => {
      stdout += bytes;
      if (/^petstore listening/.test(stdout) && (key ?? /^curl .*\n/m.exec(stdout)) !== null) resolve();
    });
    ended.then(() => reject(new Error(`it does not start: ${/\w*Error: .*|damaged.*/.exec(stderr)?.[0] ?? stderr}`)));
  });
  const url = /http\S+/.exec(stdout)![0];
  const bearer = `Bearer ${key ?? /^ps_\w+$/m.exec(stdout)![0]}`;
  const end = (signal: NodeJS.Signals) => () => {
    child.kill(signal);
    return ended;
  };
  const request = async (line: string, text?: string, more: Record<string, string> = {}) => {
    const [method, path] = line.split(' ');
    const headers = { authorization: bearer, ...(text && { 'content-type': 'application/json' }), ...more };
    const reply = await fetch(url.replace('/v1', '') + path, { method, body: text, headers });
    return { status: reply.status, headers: reply.headers, text: await reply.text() };
  };
  const raw = (line: string, more = '') => `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer}\r\n${more}\r\n`;
  const port = Number(new URL(url).port);
  return {
    child,
    port,
    request,
    raw,
    key: bearer.slice(7),
    stderr: () => stderr,
    kill: end('SIGKILL'),
    stop: end('SIGTERM'),
  };
}

/** Runs a command of the full service, and resolves with what it prints. The small edition has none, and exits. */
async function operate(...typed: string[]): Promise<string> {
  const [file, ...args] = [...command, source, ...typed];
  const child = spawn(file, args);
  let stdout = '';
  child.stdout.on('data', (bytes) => (stdout += bytes));
  await once(child, 'close');
  return stdout;
}

/** Makes a second key for a server that has ended. The small edition takes the line of one that it made elsewhere. */
async function secondKey(dir: string): Promise<string> {
  if (options.full) return /ps_\w+/.exec(await operate('keys', 'create', '--plan', 'free', '--data', dir))![0];
  const elsewhere = directory();
  const { key, kill } = await start(elsewhere);
  await kill();
  appendFileSync(dataFile(dir), readFileSync(dataFile(elsewhere)));
  return key;
}

const PET = '{"name":"Rex","categoryId":1}';
const JSON_OF = (length: number) => `Content-Type: application/json\r\nContent-Length: ${length}\r\n`;
/** What remains of the day's limit, and the seconds until it ends. */
function dayOf(reply: { headers: Headers }) {
  const [, left, seconds] = /"day";r=(\d+);t=(\d+)/.exec(reply.headers.get('ratelimit')!) ?? [];
  return { left: Number(left), seconds: Number(seconds) };
}
const dataFile = (dir: string) =>
  join(
    dir,
    readdirSync(dir)
      .filter((name) => /\.(log|jsonl)$/.test(name))
      .sort()
      .at(-1)!,
  );
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

/** The silence after which `send` gives up. The full service replies or closes before that. */
const MAX_QUIET_MS = options.full ? 30_000 : 1_000;

/** Sends `bytes` and resolves with what came: `replies` replies, or fewer if the connection ends or falls silent. */
function send(
  port: number,
  bytes: string,
  replies: number,
  later?: (socket: Socket) => Promise<void>,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let came = '';
    const done = () => socket.destroy() && resolve(came);
    socket.on('data', (data) => (came += data) && bodiesIn(came) === replies && done());
    socket.on('close', done).on('error', () => {});
    socket.write(bytes, () => {
      const quiet = () => socket.setTimeout(MAX_QUIET_MS, done);
      if (later === undefined) quiet();
      else later(socket).then(quiet);
    });
  });
}
const bodiesIn = (came: string) => came.match(/\r\n\r\n[[{].*[\]}](?=HTTP|$)/g)?.length ?? 0;

/** Loaded first: SIGWINCH sets the machine's clock, as the program sees it, five years ahead. */
const CLOCK = `const now = Date.now; let ahead = 0;
  Date.now = () => now() + ahead; 
  process.on('SIGWINCH', () => { ahead = 5 * 366 * 86_400_000; process.stderr.write('JUMPED'); });`;
/**
 * Loaded first: after each sync a line in the file `record` has the inode of what was synced, and the length up to which
 * it is on the disk: the one that it had when the sync began. A sync that can be waited for takes half a second.
 */
const syncsIn = (record: string) => `import fs from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
  import { setTimeout as wait } from 'node:timers/promises';
  const append = fs.appendFileSync;
  const tell = ({ ino, size }) => append(${JSON.stringify(record)}, ino + ' ' + size + '\\n');
  const handle = await fs.promises.open(process.execPath);
  const handles = Object.getPrototypeOf(handle);
  await handle.close();
  for (const name of ['sync', 'datasync']) {
    const sync = fs['f' + name + 'Sync'];
    const now = (fd, before) => { sync(fd); tell(before); };
    const later = async (fd, before) => { await wait(500); now(fd, before); };
    fs['f' + name + 'Sync'] = (fd) => now(fd, fs.fstatSync(fd));
    fs['f' + name] = (fd, done) => later(fd, fs.fstatSync(fd)).then(() => done(null), done);
    handles[name] = function () { return later(this.fd, fs.fstatSync(this.fd)); };
  }
  fs.appendFileSync = (path, data, how) => {
    append(path, data, how);
    if (how?.flag === 'as') tell(fs.statSync(path)); // the system has synced it
  };
  syncBuiltinESMExports();`;
/** Loaded first: each request has another address. SIGWINCH lets two minutes pass, and prints the bytes in use. */
const ADDRESSES = `import { Server } from 'node:net'; import { setFlagsFromString } from 'node:v8';
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
  });`;

async function afterClockJump(line: string) {
  const { request, child, stderr } = await start(directory(), { first: CLOCK });
  await request('POST /v1/pets', PET);
  child.kill('SIGWINCH');
  while (!stderr().includes('JUMPED')) await wait(5);
  return request(line);
}

const BREAKS: Record<string, Break> = {
  async power() {
    const [dir, record] = [directory(), join(directory(), 'syncs')];
    writeFileSync(record, '');
    const { request } = await start(dir, { first: syncsIn(record) });
    await request('POST /v1/pets', PET);
    const { ino } = statSync(dataFile(dir));
    const at = readFileSync(dataFile(dir)).indexOf('Rex'); // more may stand behind it, and not be synced yet
    const syncs = [...readFileSync(record, 'utf8').matchAll(/^(\d+) (\d+)$/gm)];
    const synced = Math.max(0, ...syncs.filter(([, file]) => file === `${ino}`).map(([, , length]) => Number(length)));
    const saw = `when the 201 came, the first ${synced} bytes of the log were on the disk; the animal is at byte ${at}`;
    return seen(at !== -1 && synced > at, saw);
  },

  /** A crash can tear the last line alone. An earlier bad line is damage, and a start that skips it loses an animal. */
  async 'torn-line'() {
    const dir = directory();
    const { request, kill, key } = await start(dir);
    for (const name of ['Ré1', 'Ré2', 'Ré3']) await request('POST /v1/pets', PET.replace('Rex', name));
    await kill();
    const whole = readFileSync(dataFile(dir));
    const startOn = (log: string | Uint8Array) => {
      writeFileSync(dataFile(dir), log);
      return start(dir, { key }).catch((error: Error) => error);
    };
    for (const cut of [5, 1]) {
      const second = await startOn(whole.subarray(0, -cut));
      if (second instanceof Error) return seen(false, second.message);
      const { text: added } = await second.request('POST /v1/pets', PET);
      await second.kill();
      // What was torn must be gone from the file, and nothing else: the next line stands alone, and is read again.
      const third = await startOn(readFileSync(dataFile(dir)));
      if (third instanceof Error) return seen(false, `after one more animal ${third.message}`);
      const { text } = await third.request('GET /v1/pets');
      if (!/Ré1.*Ré2/.test(text) || !text.endsWith(`${added}]`)) return seen(false, `what is left: ${text}`);
      await third.kill();
    }
    const lines = whole.toString().split('\n');
    const damaged = lines.with(-3, lines.at(-3)!.slice(0, -5)).join('\n');
    const last = await startOn(damaged);
    if (!(last instanceof Error)) return seen(false, 'with half of a line before the last it starts all the same');
    const isAsItWas = readFileSync(dataFile(dir), 'utf8') === damaged;
    return seen(isAsItWas, `half of the last line is dropped, and half of one before it is refused: ${last.message}`);
  },

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

  async 'repeated-post'() {
    const dir = directory();
    const under = { 'idempotency-key': 'a' };
    const first = await start(dir);
    const { text: one } = await first.request('POST /v1/pets', PET, under);
    await first.kill();
    const otherKey = await secondKey(dir);
    const second = await start(dir, { key: first.key });
    const { text: other } = await second.request('POST /v1/pets', PET, under);
    if (one !== other) return seen(false, `sent once, and again after a crash: ${one} ${other}`);
    const { text: order } = await second.request('POST /v1/store/orders', '{"petId":1}', under);
    if (!order.includes('"petId":1')) return seen(false, `the same key at another path gets the first reply: ${order}`);
    const authorization = `Bearer ${otherKey}`;
    const { text: theirs } = await second.request('POST /v1/pets', PET, { ...under, authorization });
    if (!theirs.includes('"id":2'))
      return seen(false, `the same key of another caller gets the first reply: ${theirs}`);
    await second.kill();

    // As if the crash had come before the last line: the animal and its reply are both there, or neither is.
    const cut = readFileSync(dataFile(dir), 'utf8').replace(/[^\n]*\n$/, '');
    writeFileSync(dataFile(dir), cut);
    const third = await start(dir, { key: otherKey });
    const { text: again } = await third.request('POST /v1/pets', PET, under);
    const { text: all } = await third.request('GET /v1/pets');
    const isOnce = all.endsWith(`,${again}]`) && all.match(/"id"/g)?.length === 2;
    return seen(isOnce, `sent by two callers, and by one of them again after a crash in between: ${all}`);
  },

  async 'restart-limits'() {
    const dir = directory();
    const first = await start(dir);
    const one = dayOf(await first.request('GET /v1/pets'));
    await wait(2_500); // a crash may lose what was counted in the second before it
    await first.kill();
    const second = await start(dir, { key: first.key });
    const two = dayOf(await second.request('GET /v1/pets'));
    await second.stop();
    const third = await start(dir, { key: first.key });
    const three = dayOf(await third.request('GET /v1/pets'));
    const isCounted = two.left < one.left && three.left < two.left;
    const isSameDay = two.seconds < one.seconds - 1 && three.seconds <= two.seconds;
    const told = [one, two, three].map(({ left, seconds }) => `${left} for ${seconds} s`).join(', ');
    return seen(isCounted && isSameDay, `of the day remained, before and after a crash and after a SIGTERM: ${told}`);
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

  async int64() {
    const dir = directory();
    const first = await start(dir);
    const sent = '"name":"9007199254740993","categoryId":9007199254740993';
    const { text } = await first.request('POST /v1/pets', `{${sent}}`);
    if (!text.includes(sent)) return seen(false, `${sent} was sent, and came back in ${text}`);
    await first.kill();
    const { request } = await start(dir, { key: first.key });
    const { text: read } = await request('GET /v1/pets');
    return seen(read === `[${text}]`, `${sent} was sent, and came back after a restart in ${read}`);
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

async function report(name: string): Promise<void> {
  const { isKept, saw } = await BREAKS[name]();
  console.log(`${name}: ${isKept ? 'kept' : 'broken'}: ${saw.trim()}`);
}

const unknown = named.find((name) => !Object.hasOwn(BREAKS, name));
if (unknown !== undefined) {
  console.error(`there is no ${unknown}: there are ${Object.keys(BREAKS).join(', ')}`);
  process.exit(1);
}
try {
  const wanted = named.length > 0 ? named : Object.keys(BREAKS);
  for (let next = 0; next < wanted.length; next += 4) await Promise.all(wanted.slice(next, next + 4).map(report));
} finally {
  for (const child of processes) child.kill('SIGKILL');
  await Promise.all(processes.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'close')));
  for (const dir of directories) rmSync(dir, { recursive: true, force: true });
}
