/** Animals in and out: import, export, and a seed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, stat, truncate, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { command, injected, whyNoStrace } from '../program.ts';
import { ANIMAL, withStore, workplace } from './workplace.ts';

const LINES = [
  '{"name":"Rex","categoryId":9007199254740993}',
  '',
  '{"id":77,"name":"Bo \\u00e9 \\"x\\"","categoryId":-9223372036854775808,"status":"sold"}',
  '{"status":"pending","categoryId":1e2,"name":"🐕"}',
].join('\r\n');

const EXPORTED = [
  '{"id":1,"name":"Rex","categoryId":9007199254740993,"status":"available"}\n',
  '{"id":2,"name":"Bo é \\"x\\"","categoryId":-9223372036854775808,"status":"sold"}\n',
  '{"id":3,"name":"🐕","categoryId":100,"status":"pending"}\n',
].join('');

test('what was imported is exported, and imported again, on the store itself and through a server', async (t) => {
  const { at, run, done, json, serve } = await workplace(t);
  await writeFile(at('in'), LINES);
  await writeFile(at('out'), EXPORTED);
  const all = EXPORTED + EXPORTED.replace(/"id":(\d)/g, (_, id) => `"id":${Number(id) + 3}`);
  const { exit, stdout, stderr } = await run('import in');
  assert.deepEqual([exit, stdout, stderr], [0, '3 animals imported, ids 1 to 3\n', '']);
  assert.equal(await done('export'), EXPORTED);
  const server = await serve('--first-key free');
  assert.equal(await done('export --status sold'), `${EXPORTED.split('\n')[1]}\n`);
  const counts = { added: 3, already: 0, firstId: 4, lastId: 6 };
  assert.deepEqual(await json('import out'), counts);
  assert.equal(await done('export'), all);
  const reply = await fetch(`${server.url}/pets`, { headers: { authorization: `Bearer ${server.key}` } });
  assert.equal(await reply.text(), `[${all.trimEnd().replaceAll('\n', ',')}]`);
  const { stdout: piped } = await run('import - --json', { input: LINES });
  assert.deepEqual(JSON.parse(piped), { ...counts, added: 0, already: 3, firstId: 1, lastId: 3 }, 'nothing twice');
  const input = '{"name":"one of many","categoryId":1}\n'.repeat(1_000);
  assert.match((await run('import -', { input })).stdout, /^1,000 animals imported/);
  const log = (await server.stop()).stderr;
  assert.equal(log.match(/"command":"import"/g)?.length, 3, 'a line for an import, not for each of its batches');
});

const TEXT = 'a string of 1–255 characters';
const BAD = [
  ['{"name":"","categoryId":1}', 'name: must be 1–255 characters (got 0)'],
  [`{"name":"${'n'.repeat(256)}","categoryId":1}`, 'name: must be 1–255 characters (got 256)'],
  ['{"name":"\\u0085\\u3000","categoryId":1}', 'name: must not be only white space'],
  ['{"name":"a\\u0000","categoryId":1}', 'name: must not have the character U+0000'],
  ['{"name":"a","categoryId":1.5}', 'categoryId: must be a whole number'],
  ['{"name":"a","categoryId":9223372036854775808}', 'categoryId: must be a whole number from '],
  [
    '{"categoryId":"1","status":"lost"}',
    `name: is missing (${TEXT}); categoryId: must be a whole number (got "1"); status: must be one of`,
  ],
  [
    '{"eyes":2}',
    `name: is missing (${TEXT}); categoryId: is missing (a whole number); "eyes": is unknown; leave it out`,
  ],
  ['[1]', 'must be a JSON object (got an array)'],
  ['{"name":"a","categoryId":1,"__proto__":{"status":"sold"}}', '"__proto__": is unknown'],
  ['{"name":"a","name":"b","categoryId":1}', 'name'],
  ['{"name":"a","categoryId":1', ''],
  [`{"name":"a","categoryId":1}${' '.repeat(65_536)}`, 'longer than 65536 bytes'],
];

test('bad lines are reported by number and reason, 20 of them, and then how many more; nothing is added', async (t) => {
  const { at, run } = await workplace(t);
  const many = 1_234;
  const bad = [...BAD.map(([line]) => line), ...Array(many - BAD.length).fill('no')];
  await writeFile(at('in'), [...bad, '{"name":"\\ufeff","categoryId":1}'].join('\n'));
  const refused = await run('import in --json');
  assert.deepEqual([refused.exit, refused.stdout, existsSync(at('data'))], [1, '', false]);
  const reported = refused.stderr.split('\n');
  for (const [at, line] of bad.slice(0, 20).entries()) {
    const reason = BAD[at]?.[1] ?? 'not JSON; import takes JSON lines such as {';
    assert.ok(reported[at].startsWith(`line ${at + 1}: `) && reported[at].includes(reason), `${line}: ${reported[at]}`);
  }
  assert.deepEqual(reported.slice(20), ['and 1,214 more bad lines', 'nothing was imported: 1,234 bad lines', '']);
});

test('whether all of it fits is checked before the first batch; what was imported counts as there', async (t) => {
  const { at, run, json, done, serve } = await workplace(t);
  await writeFile(at('in'), `{"name":"${'n'.repeat(100)}","categoryId":1}\n`.repeat(9_000)); // 1.3 MB in the store
  const server = await serve('--max-store-mb 1');
  for (const times of [1, 2]) {
    const { exit, stdout, stderr } = await run('import in');
    assert.deepEqual([exit, stdout], [1, ''], `${times}: ${stderr}`);
    const said =
      /^the rest of the input takes 1\.\d MB in the store, and it has room for 1\.0 of its 1\.0 MB: .*; nothing was imported\n$/;
    assert.match(stderr, said);
    assert.match(await done('verify'), /^pets +0$/m);
  }
  await server.stop();
  assert.equal((await json<{ added: number }>('import in --max-store-mb 2')).added, 9_000);
  const again = await json<{ added: number; already: number }>('import in --max-store-mb 2');
  assert.deepEqual([again.added, again.already], [0, 9_000], 'what is there already needs no room');
});

test('what comes through a pipe that cannot be read twice is imported too', async (t) => {
  const { at, cwd } = await workplace(t);
  await writeFile(at('in'), LINES);
  const line = [...(await command()), 'import', '/dev/fd/3'].map((word) => `'${word}'`).join(' ');
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `${line} 3< <(cat in)`], { cwd, encoding: 'utf8' });
  assert.deepEqual([status, stdout, stderr], [0, '3 animals imported, ids 1 to 3\n', '']);
});

test('an import that is larger than memory is checked line by line', async (t) => {
  const { at, run } = await workplace(t);
  const [lines, heapMb] = [60_000, 32];
  const block = `${JSON.stringify({ name: '🐕'.repeat(230), categoryId: 1 })}\n`.repeat(lines / 100);
  for (let n = 0; n < 100; n++) await appendFile(at('in'), block);
  await appendFile(at('in'), 'no animal');
  assert.ok((await stat(at('in'))).size > 1.5 * heapMb * 2 ** 20);
  // Where `process.exit` ends it, that is printed too: with a small heap it may wait for ever for a thread that compiles.
  const env = { NODE_OPTIONS: `--max-old-space-size=${heapMb} --trace-exit` };
  const { exit, stderr } = await run('import in', { env });
  assert.match(stderr, /^line 60001: not JSON.*\nnothing was imported: 1 bad line\n$/);
  assert.equal(exit, 1);
});

test('an import that holds too much to keep is refused, and nothing is added', async (t) => {
  const { at, run } = await workplace(t);
  await writeFile(at('in'), ANIMAL);
  await truncate(at('in'), 513 * 2 ** 20); // the rest is one line, which takes no room on the disk
  const { exit, stdout, stderr } = await run('import in');
  assert.deepEqual([exit, stdout, stderr], [1, '', 'in is too long: import it in parts\n']);
  assert.ok(!existsSync(at('data')));
});

test('a seed that is not what it should be is refused with the place of its faults, and nothing is added', async (t) => {
  const { at, run, done } = await workplace(t);
  const many = `{"pets":[${'{"name":""},'.repeat(3_000)}{}]}`;
  for (const [text, why] of [
    ['{', /^seed seed: .*column 2/],
    [
      '{"pets":[1,{"name":"a"}]}',
      /^seed seed: pets\.0: must be a JSON object \(got 1\); pets\.1: categoryId: is missing \(a whole number\)$/,
    ],
    [
      '{"zoo":1,"categories":[{"id":1.5,"name":"a"}]}',
      /categories\.0: id: must be a whole number .*; "zoo": is unknown; leave it out$/,
    ],
    [many, /: pets\.0: name: .*; pets\.9: [^;]+; .*; and \S+ more/],
    ['{}'.padEnd(1_048_577), /longer than 1048576 bytes; petstore import takes more$/],
  ] as const) {
    await writeFile(at('seed'), text);
    const { exit, stdout, stderr } = await run('serve --port 0 --seed seed');
    assert.deepEqual([exit, stdout], [1, '']);
    assert.match(JSON.parse(stderr).message, why);
  }
  assert.match(await done('verify'), /^pets +0$/m);
});

/** Every third call is tried, in one run those that another run leaves out. */
const STEP = 3;
const FIRST = 1 + (Date.now() % STEP);

test('an import that is killed at a write is completed by the same command', {
  skip: whyNoStrace() ?? false,
  timeout: 600_000,
}, async (t) => {
  let cases = 0;
  for (let n = FIRST; ; n += STEP) {
    const { cwd, at, animals, json } = await workplace(t);
    await animals(1_500);
    const ran = await injected(`pwrite64:signal=SIGKILL:when=${n}`, ['import', 'in'], { cwd });
    if (!ran.wasHit) break;
    cases++;
    const { added, already } = await json<{ added: number; already: number }>('import in');
    assert.equal(added + already, 1_500, `write ${n}`);
    const stored = await withStore(at('data'), async ({ engine }) => engine.store.read.pets.size);
    assert.equal(stored, 1_500, `nothing twice: write ${n}`);
  }
  t.diagnostic(`${cases} kills`);
  assert.ok(cases >= 2, String(cases));
});

test('no control character of others reaches a terminal: names, members, files, in words and as JSON', async (t) => {
  const { at, run, done } = await workplace(t);
  const unsafe = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
  const nasty = ['\x1b[2J', '\x9b31m', '\u202eexe.', '\u2028', '\x7f', '\u0085', '\u2066', 'a\rb', '\ufeff', '\u200ey'];
  const lines = nasty.map((text) => JSON.stringify({ name: `n${text}`, categoryId: 1 }));
  await writeFile(at('good'), lines.join('\n'));
  await done('import good');
  const exported = await done('export');
  assert.doesNotMatch(exported, unsafe);
  const names = exported.trimEnd().split('\n').map((line) => JSON.parse(line).name); // biome-ignore format: one way
  assert.deepEqual(names, nasty.map((text) => `n${text}`)); // biome-ignore format: one way
  const bad = nasty.map((text) => `{"name":"a","categoryId":1,${JSON.stringify(`\n${text}`)}:1}`).join('\n');
  await writeFile(at('bad'), bad);
  await writeFile(at('bad\x1b[31m'), 'x');
  for (const line of ['import bad', 'import bad\x1b[31m', 'verify --da\x1bta x']) {
    const { exit, stdout, stderr } = await run(line);
    assert.notEqual(exit, 0, line);
    assert.doesNotMatch(stdout + stderr, unsafe, line);
    if (line === 'import bad') assert.equal(stderr.split('\n').length, nasty.length + 2, 'a line each, and the last');
  }
});
