/** The exercises of README.md, each judged by what a user would see, in more than one way. */
import { copyFileSync, cpSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Break, dataFile, directory, moduleOf, must, options, secondKey, seen, source, start } from './program.ts';

const WATCHED_DISK = new URL('watched-disk.mjs', import.meta.url).href;
const petOf = (name: string, categoryId: string | number = 1) =>
  `{"name":${JSON.stringify(name)},"categoryId":${categoryId}}`;
const ORDER = '{"petId":1}';
const CANCELLED = '{"status":"cancelled"}';

/** A copy of a directory whose data file has these bytes. */
function directoryWith(dir: string, bytes: string | Uint8Array): string {
  const copy = directory();
  cpSync(dir, copy, { recursive: true, filter: (path) => !statSync(path).isSocket() });
  writeFileSync(join(copy, basename(dataFile(dir))), bytes);
  return copy;
}

/** What a user finds in a program: its animals and its orders. */
async function contentOf({ request }: { request: (line: string) => Promise<{ text: string }> }): Promise<string> {
  const [pets, orders] = await Promise.all([request('GET /v1/pets'), request('GET /v1/store/orders')]);
  return `${pets.text} ${orders.text}`;
}

/** Starts on this directory, and returns what a user finds there. */
async function foundIn(dir: string, key: string): Promise<string> {
  const again = await start(dir, { key });
  const content = await contentOf(again);
  await again.kill();
  return content;
}

async function power() {
  const [dir, record] = [directory(), directory()];
  const server = await start(dir, { first: WATCHED_DISK, env: { RECORD: record } });
  const { request, key, child, stderr } = server;
  /** What a power failure at this moment leaves of the log. */
  const durable = () => {
    const path = join(record, String(statSync(dataFile(dir)).ino));
    return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  };
  const states = [{ what: 'the first start', bytes: durable(), content: await contentOf(server) }];
  const acknowledge = async (what: string, line: string, body: string) => {
    const { status, text } = await request(line, body);
    const bytes = durable();
    must(status < 300, `${what} is answered ${status} ${text}`);
    states.push({ what, bytes, content: await contentOf(server) });
  };

  let isAnswered = false;
  const first = request('POST /v1/pets', petOf('First')).finally(() => (isAnswered = true));
  while (!isAnswered) {
    const { text } = await request('GET /v1/pets');
    must(
      !text.includes('First') || durable().includes('First'),
      'others see an animal that a power failure takes back',
    );
    await wait(60);
  }
  must(
    (await first).status === 201 && durable().includes('First'),
    'when the 201 comes, the animal is not on the disk',
  );
  await acknowledge('a second animal', 'POST /v1/pets', petOf('Second'));
  await acknowledge('an order', 'POST /v1/store/orders', ORDER);
  await acknowledge('a cancelled order', 'PATCH /v1/store/orders/1', CANCELLED);
  const beside = ['Third', 'Fourth', 'Fifth'].map(async (name) => {
    const { status } = await request('POST /v1/pets', petOf(name));
    must(
      status === 201 && durable().includes(name),
      'of three creates at once one was answered before it was on the disk',
    );
  });
  await Promise.all(beside);
  await acknowledge('an order after a pause', 'POST /v1/store/orders', ORDER);

  const before = await contentOf(server);
  for (const [refused, calls] of [
    ['Sixth', 'sync'],
    ['Seventh', 'write'],
  ]) {
    const { length } = stderr();
    child.kill('SIGWINCH');
    while (child.exitCode === null && !stderr().slice(length).includes('FAILING')) await wait(5);
    const isUp = () => child.exitCode === null && child.signalCode === null;
    for (const [what, line, body] of [
      ['an animal', 'POST /v1/pets', petOf(refused)],
      ['an order', 'POST /v1/store/orders', '{"petId":2}'],
    ]) {
      const { status } = await request(line, body).catch(() => ({ status: 'none' }));
      must(
        status === 'none' || Number(status) >= 500,
        `${what} that the disk refused to ${calls} is answered ${status}`,
      );
      await wait(100);
      const left = await contentOf(server).catch(() => before);
      must(left === before, `the disk refused to ${calls} ${what}, and others see it all the same`);
    }
    if (!isUp()) break; // the program ends: it cannot know what is on the disk
  }
  await server.kill();

  const name = basename(dataFile(dir));
  must(
    !existsSync(join(record, `rewritten ${name}`)),
    'the log is emptied, moved away or replaced by what is not durable: a crash meanwhile loses it',
  );
  await Promise.all(
    states.map(async ({ what, bytes, content }) => {
      const left = await foundIn(directoryWith(dir, bytes), key);
      must(left === content, `after ${what} and a power failure there is ${left}`);
    }),
  );
  return seen(true, `each of ${states.length + 4} acknowledged changes was on the disk before its reply`);
}

/** A crash can tear the last line alone. Any other bad line is damage, and a start that skips it loses an animal. */
async function tornLine() {
  const dir = directory();
  const { request, kill, key } = await start(dir);
  for (const name of ['Ré1', 'Ré2', '{"pet":{}}\n']) await request('POST /v1/pets', petOf(name));
  await kill();
  const before = readFileSync(dataFile(dir));
  const second = await start(dir, { key });
  await second.request('POST /v1/store/orders', ORDER);
  await second.kill();
  const whole = readFileSync(dataFile(dir));
  const last = whole.subarray(0, -1).lastIndexOf('\n') + 1;
  const content = await foundIn(directoryWith(dir, whole), key);
  const without = await foundIn(directoryWith(dir, before), key);

  /** After this crash the program starts, adds, and starts again. */
  const tear = async (bytes: Uint8Array, what: string, allowed: string[]) => {
    const [torn, record] = [directoryWith(dir, bytes), directory()];
    const again = await start(torn, { key, first: WATCHED_DISK, env: { RECORD: record } });
    const left = await contentOf(again);
    must(allowed.includes(left), `after a crash ${what} there is ${left}`);
    const { text: added } = await again.request('POST /v1/pets', petOf('Added'));
    const now = await contentOf(again);
    await again.kill();
    const isRewritten = existsSync(join(record, `rewritten ${basename(dataFile(torn))}`));
    must(!isRewritten, 'the log is emptied, moved away or replaced by what is not durable: a crash meanwhile loses it');
    const third = await start(torn, { key }).catch((error: Error) => {
      throw new Error(`with one more animal after the torn line ${error.message}`);
    });
    const then = await contentOf(third);
    await third.kill();
    must(then === now && then.includes(added), `after one more animal and another start there is ${then}`);
  };
  const cuts = [1, 2, 5, Math.floor((whole.length - last) / 2), whole.length - last - 1];
  const inName = before.lastIndexOf('Ré2') + 2; // between the two bytes of é
  const onlyFirst = await foundIn(directoryWith(dir, before.subarray(0, before.lastIndexOf('\n', inName) + 1)), key);
  await Promise.all([
    ...cuts.map((cut) => {
      const allowed = cut === 1 ? [content, without] : [without];
      return tear(whole.subarray(0, -cut), `that cut ${cut} bytes of the last line`, allowed);
    }),
    tear(before.subarray(0, inName), 'in the middle of a letter', [onlyFirst]),
  ]);

  const fresh = directory();
  copyFileSync(dataFile(dir), join(fresh, basename(dataFile(dir))));
  if (!options.full) {
    truncateSync(dataFile(fresh), 7);
    const begun = await start(fresh);
    const { status } = await begun.request('POST /v1/pets', petOf('Rex'));
    must(status === 201, `after a crash in the very first line a create is answered ${status}`);
    const now = await contentOf(begun);
    await begun.kill();
    const then = await foundIn(fresh, begun.key);
    must(then === now, `after a crash in the very first line, one animal and another start there is ${then}`);
  }

  const lines = whole.toString().split('\n');
  const half = (index: number) => lines.with(index, lines.at(index)!.slice(0, -5));
  const damages: Record<string, string> = {
    'half of the line before the last': half(-3).join('\n'),
    'half of the last line, with its line feed': half(-2).join('\n'),
    'half of an earlier line, and half of the last': half(-4).join('\n').slice(0, -6),
    'a line of other characters': lines.toSpliced(-3, 0, 'xxxx').join('\n'),
  };
  const told = Object.entries(damages).map(async ([what, bytes]) => {
    const damaged = directoryWith(dir, bytes);
    const again = await start(damaged, { key }).then(
      () => undefined,
      (error: Error) => error,
    );
    must(again !== undefined, `with ${what} it starts all the same`);
    const left = readFileSync(dataFile(damaged), 'utf8');
    must(
      left.startsWith(bytes.slice(0, bytes.lastIndexOf('\n') + 1)),
      `${what} is damage, and the start changes the file`,
    );
  });
  await Promise.all(told);
  return seen(
    true,
    `${cuts.length + 1} torn ends are dropped, ${told.length} damaged logs are refused and left as they are`,
  );
}

/** Loaded first: the machine's clock is as many seconds ahead. */
const ahead = (seconds: number) =>
  moduleOf(`for (const clock of [Date, performance]) {
    const now = clock.now.bind(clock); clock.now = () => now() + ${seconds * 1000};
  }`);
/** What remains of a minute and of a day, and the seconds until each ends. */
function windowsOf(reply: { headers: Headers }) {
  const [minute, day] = [...reply.headers.get('ratelimit')!.matchAll(/r=(-?\d+);t=(-?\d+)/g)].map(
    ([, left, seconds]) => {
      return { left: Number(left), seconds: Number(seconds) };
    },
  );
  return { minute, day };
}

const STEADY = 7;
async function restartLimits() {
  const dir = directory();
  const made = await start(dir);
  await made.kill();
  const other = { authorization: `Bearer ${await secondKey(dir)}` };
  const key = made.key;
  let server = await start(dir, { key });
  const used = { one: 0, two: 0 };
  const one = async () => {
    used.one++;
    return windowsOf(await server.request('GET /v1/pets'));
  };
  const two = async () => {
    used.two++;
    return windowsOf(await server.request('GET /v1/pets', undefined, other));
  };
  const isCounted = async (when: string) => {
    for (const [who, ask] of [
      ['one', one],
      ['two', two],
    ] as const) {
      const { minute, day } = await ask();
      const told = `${when} caller ${who}, who sent ${used[who]}, has ${minute.left} and ${day.left} left`;
      must(minute.left === 60 - used[who] && day.left === 1_000 - used[who], told);
    }
  };
  const now = () => performance.now() / 1000;
  const isSameWindow = async (when: string) => {
    const asked = now();
    const { minute, day } = await one();
    const [least, most] = [asked - replied, now() - sent];
    const fits = ({ seconds }: { seconds: number }, length: number) =>
      seconds > length - most - 1.5 && seconds < length - least + 1.5;
    const told = `${when}, ${most.toFixed(1)} s after its first request, the windows end in ${minute.seconds} and ${day.seconds} s`;
    must(fits(minute, 60) && fits(day, 86_400), told);
  };

  const sent = now();
  await one();
  const replied = now();
  await two();
  await one();
  await wait(3_400); // longer than a second without a request
  await one();
  await one();
  await wait(1_250); // a crash may lose what was counted in the second before it
  await server.kill();
  server = await start(dir, { key });
  await isCounted('after a crash');
  await isSameWindow('after a crash');
  await one();
  await server.stop();
  server = await start(dir, { key });
  await isCounted('after a SIGTERM');
  await isSameWindow('after a SIGTERM');
  await wait(1_250);
  for (let n = 0; n < STEADY; n++) {
    await one();
    await wait(400);
  }
  await server.kill();
  server = await start(dir, { key });
  const { day } = await one();
  const lost = day.left - (1_000 - used.one);
  const gave = `a crash behind ${STEADY} requests, each 0.4 s after the last, gave ${lost} back`;
  must(lost >= 0 && lost <= STEADY - 2, gave); // of the last second are two or three, and a timer may be late
  await server.stop();

  server = await start(dir, { key, first: ahead(62) });
  const { minute, day: sameDay } = windowsOf(await server.request('GET /v1/pets'));
  await server.stop();
  must(minute.left === 59, `a minute later ${minute.left} of the minute are left after one request`);
  must(sameDay.left === day.left - 1, `a minute later ${sameDay.left} of the day are left, and not ${day.left - 1}`);
  server = await start(dir, { key, first: ahead(86_500) });
  const { day: nextDay } = windowsOf(await server.request('GET /v1/pets'));
  await server.stop();
  must(nextDay.left === 999, `a day later ${nextDay.left} of the day are left after one request`);
  return seen(true, `nothing given back after a crash and a SIGTERM; ${gave}`);
}

async function repeatedPost() {
  const dir = directory();
  const made = await start(dir);
  await made.kill();
  const theirs = { authorization: `Bearer ${await secondKey(dir)}` };
  const { key } = made;
  let server = await start(dir, { key });
  const under = (name: string) => ({ 'idempotency-key': name });
  const pet = async (name: string, more = {}, body = petOf('Rex')) => {
    const { status, headers, text } = await server.request('POST /v1/pets', body, { ...under(name), ...more });
    return `${status} ${headers.get('location')} ${text}`;
  };
  const order = async (name: string, petId = 1) => {
    const sent = `{"petId":${petId}}`;
    const { status, headers, text } = await server.request('POST /v1/store/orders', sent, under(name));
    return `${status} ${headers.get('location')} ${text}`;
  };
  const counts = async () => {
    const [pets, orders] = (await contentOf(server)).split(/(?<=]) (?=\[)/);
    return `${pets.match(/"id"/g)?.length ?? 0} animals, ${orders.match(/"id"/g)?.length ?? 0} orders`;
  };
  const restart = async () => {
    await server.kill();
    server = await start(dir, { key });
  };
  const isStill = async (what: string, first: string, again: string) =>
    must(again === first, `${what}: first ${first}, again ${again}`);

  const firstPet = await pet('a');
  must(firstPet.startsWith('201 /v1/pets/1 '), `a create under a key is answered ${firstPet}`);
  const log = readFileSync(dataFile(dir));
  await isStill('sent twice', firstPet, await pet('a'));
  const secondPet = await pet('b');
  must(secondPet.startsWith('201 /v1/pets/2 '), `another key with the same body gets ${secondPet}`);
  const firstOrder = await order('a');
  must(firstOrder.startsWith('201 /v1/store/orders/1 '), `the same key at another path gets ${firstOrder}`);
  const whole = readFileSync(dataFile(dir));
  await isStill('an order sent twice', firstOrder, await order('a'));
  await isStill('sent again when the animal was ordered', firstPet, await pet('a'));
  await isStill('sent again after a later create', secondPet, await pet('b'));
  await pet('a', {}, petOf('Another'));
  must((await counts()) === '2 animals, 1 orders', `one key with two bodies leaves ${await counts()}`);
  const foreign = await pet('a', theirs);
  must(foreign.startsWith('201 /v1/pets/3 '), `the same key of another caller gets ${foreign}`);
  const others = ['c', 'd', 'constructor', '__proto__', 'A', `${'a'.repeat(254)}1`, `${'a'.repeat(254)}2`];
  const created = new Set([firstPet, secondPet]);
  for (const name of others) {
    const reply = await pet(name);
    must(reply.startsWith('201 ') && !created.has(reply), `a create under the key ${name} is answered ${reply}`);
    created.add(reply);
  }
  const [once, twice] = [
    await server.request('POST /v1/pets', petOf('Rex')),
    await server.request('POST /v1/pets', petOf('Rex')),
  ];
  must(once.text !== twice.text, 'two creates without a key get one reply');
  const atOnce = new Set(await Promise.all(Array.from({ length: 4 }, () => pet('at-once'))));
  must(
    atOnce.size === 1 && [...atOnce][0].startsWith('201 '),
    `four at once under one key get ${[...atOnce].join(', ')}`,
  );
  const list = await server.request('GET /v1/pets', undefined, under('a'));
  must(list.status === 200 && list.text.startsWith('['), `a list under the key gets ${list.status} ${list.text}`);
  const cancelled = await server.request('PATCH /v1/store/orders/1', CANCELLED, under('a'));
  must(cancelled.text.includes('"cancelled"'), `a change under the key gets ${cancelled.status} ${cancelled.text}`);
  await isStill('an order sent again when it was cancelled', firstOrder, await order('a'));

  const all = await counts();
  await restart();
  await isStill('sent again after a crash', firstPet, await pet('a'));
  await isStill('sent again after a crash', secondPet, await pet('b'));
  await isStill('an order sent again after a crash', firstOrder, await order('a'));
  await isStill('sent again by another caller after a crash', foreign, await pet('a', theirs));
  must((await counts()) === all, `sent again after a crash: ${all} became ${await counts()}`);
  await server.kill();

  // A crash may come before any line: the change and its reply are both there, or neither is.
  const linesOf = (bytes: Buffer) => bytes.toString().split(/(?<=\n)/);
  const last = linesOf(log).findLastIndex((line) => line.includes('"Rex"'));
  for (let end = last; end <= linesOf(whole).length; end++) {
    const crashed = directoryWith(dir, linesOf(whole).slice(0, end).join(''));
    server = await start(crashed, { key });
    const replies = [await pet('a'), await pet('b'), await order('a')];
    const left = await counts();
    await server.kill();
    const isOnce = left === '2 animals, 1 orders' && replies.every((reply) => reply.startsWith('201 '));
    must(isOnce, `after a crash between two lines all was sent again, and there are ${left}: ${replies.join(', ')}`);
  }
  return seen(true, `sent again at once, later, after a crash and between any two lines: ${all} in the end`);
}

/** Strings that a program may put around the digits of a long number: the usual ones, and all that stand in its source. */
function marks(): string[] {
  const usual = [
    '',
    'n',
    '#',
    '@',
    '$',
    '§',
    '\0',
    '\u0001',
    'n:',
    'BigInt:',
    'bigint:',
    'int64:',
    '__bigint__',
    '"',
    '\\',
    '\\"',
    ':',
    '":',
  ];
  if (options.full) return usual;
  const strings = readFileSync(source, 'utf8').matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n]){1,24}?)(?:\1|\$\{)/g);
  const own = [...strings].map(([, , text]) =>
    text
      .replace(/\\u\{?([\da-f]+)\}?/gi, (_, hex) => String.fromCodePoint(Number.parseInt(hex, 16)))
      .replace(
        /\\([0bfnrtv'"`\\])/g,
        (_, one) => ({ 0: '\0', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' })[one as string] ?? one,
      ),
  );
  return [...new Set([...usual, ...own])];
}

async function int64() {
  const dir = directory();
  const first = await start(dir);
  const { key } = first;
  await first.kill();
  // More than 60 requests a minute. The full service is asked fewer.
  if (!options.full) writeFileSync(dataFile(dir), readFileSync(dataFile(dir), 'utf8').replace('"free"', '"business"'));
  let server = await start(dir, { key });
  const added: string[] = [];
  const create = async (body: string, expected: string) => {
    const { status, text } = await server.request('POST /v1/pets', body);
    must(status === 201 && text.includes(expected), `${body} is answered ${status} ${text}`);
    added.push(text);
  };
  const exact = [
    '9007199254740993',
    '-9007199254740993',
    '-9223372036854775808',
    '9223372036854775807',
    '9007199254740991',
    '1234567890123456',
    '123456789012345',
    '0',
    '-1',
  ];
  for (const number of exact) await create(petOf('Rex', number), `"categoryId":${number}`);
  await create('{ "categoryId" :\n9007199254740993 , "name" : "\\\\" }', '"categoryId":9007199254740993');
  await create('{"name":"\\"9007199254740993","categoryId":9007199254740995\n}', '"categoryId":9007199254740995');
  await create('{"name":"Rex","categor\\u0079Id":9007199254740993}', '"categoryId":9007199254740993');
  for (const number of ['9007199254740993.0', '9.007199254740993e15']) {
    const { status, text } = await server.request('POST /v1/pets', petOf('Rex', number));
    if (status === 400) continue; // a program may refuse what is written as no integer
    must(status === 201 && text.includes('"categoryId":9007199254740993'), `${number} is answered ${status} ${text}`);
    added.push(text);
  }

  const refused = [
    '9223372036854775808',
    '-9223372036854775809',
    '12345678901234567890123',
    '1.5',
    '"9007199254740993"',
    '[9007199254740993]',
    '1,"more":[9007199254740993]',
  ];
  for (const number of refused) {
    const { status, text } = await server.request('POST /v1/pets', petOf('Rex', number));
    must(status === 400, `the category ${number} is answered ${status} ${text}`);
  }
  for (const petId of ['9007199254740993', '9223372036854775808']) {
    const { status } = await server.request('POST /v1/store/orders', `{"petId":${petId}}`);
    must(status === 400, `an order of the animal ${petId}, which there is not, is answered ${status}`);
  }
  const mustBeName = async (name: string) => {
    const { status, text } = await server.request('POST /v1/pets', petOf(name, '9007199254740993'));
    if (status === 400 && /\p{Cc}/u.test(name)) return; // a program may refuse control characters
    const isSame = status === 201 && text.includes(`"name":${JSON.stringify(name)},"categoryId":9007199254740993`);
    must(isSame, `the name ${JSON.stringify(name)} is answered ${status} ${text}`);
    added.push(text);
  };
  for (const mark of marks()) {
    await mustBeName(`${mark}9007199254740993`);
    if (!options.full) await mustBeName(`${mark}9007199254740993${mark}`);
  }
  await mustBeName('"categoryId":9007199254740995,');
  await mustBeName('9007199254740993n');
  const placed = await server.request('POST /v1/store/orders', ORDER);
  must(placed.status === 201, `an order of the animal 1 is answered ${placed.status} ${placed.text}`);
  await server.request('PATCH /v1/store/orders/1', CANCELLED);

  const all = `[${added.join(',')}]`;
  const read = async () => {
    let pets = '';
    for (let after = 0; after < added.length; after += 100) {
      const { text } = await server.request(`GET /v1/pets?limit=100&after=${after}`);
      pets += `${pets === '' ? '' : ','}${text.slice(1, -1)}`;
    }
    return `[${pets}]`;
  };
  const difference = (found: string) => {
    const index = [...found].findIndex((letter, at) => letter !== all[at]);
    return `${found.slice(Math.max(0, index - 60), index + 60)} in place of ${all.slice(Math.max(0, index - 60), index + 60)}`;
  };
  for (const when of ['', ' after a restart', ' after another']) {
    const found = await read();
    must(found === all, `the list has${when} ${difference(found)}`);
    await server.kill();
    server = await start(dir, { key });
  }
  return seen(true, `${added.length} animals are exact in replies, in lists and after two restarts`);
}

export const EXERCISES: Record<string, Break> = {
  power,
  'torn-line': tornLine,
  'restart-limits': restartLimits,
  'repeated-post': repeatedPost,
  int64,
};
