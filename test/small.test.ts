/** The small edition in docs/small: which rows of the contract it passes. small.slow.test.ts breaks it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build, transformSync } from 'esbuild';
import { makeKey } from '../src/access/keys.ts';
import { titleOf, tryRow } from './api/row.ts';
import { GROUPS, type Row } from './api/table.ts';
import { EXERCISES, linesOf, mended } from './mends.ts';
import { temporary } from './program.ts';
import { written } from './written.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const README = 'docs/small/README.md';
/** A row of its table, up to the count: the promise, and how many rows of the contract fail by it. */
const PROMISE = /(`([\w-]+)` \| `src\/[\w/.-]+`) \| \d+ \|$/gm;
const PROMISES = [...read(README).matchAll(PROMISE)].map(([, , name]) => name);

const sends = (row: Row, ...names: string[]) => names.some((name) => row.headers?.[name] !== undefined);
/** By which promise a row of the contract can fail. Of several it is the first. */
const FAILS_BY: Record<string, (row: Row, group: string) => boolean> = {
  // Every row of that group rests on those before it.
  'change-pet': (_, group) => group === 'changing and removing animals',
  categories: ({ path }) => path.startsWith('/v1/categories'),
  health: ({ path }) => !path.startsWith('/v1'),
  preflight: ({ method, has }) => method === 'OPTIONS' || has?.allow !== undefined,
  'read-only-key': ({ key }) => key === 'read only',
  'repeated-post': (row) => sends(row, 'idempotency-key'),
  int64: ({ path, body, text, says }) => /\d{16}|\d\.0{15}/.test(`${path} ${JSON.stringify(body)} ${text} ${says}`),
  'duplicate-member': ({ code }) => code === 'invalid_json',
  message: ({ code, says, has }) =>
    code !== undefined && (says ?? has?.['accept-encoding'] ?? has?.['accept-patch']) !== undefined,
};

/** The small edition on a log with these keys and the animals of the seed. */
async function startSmall(t: TestContext, plans: Record<string, string>): Promise<string> {
  const data = await temporary(t);
  const { pets } = JSON.parse(read('data/seed.json'));
  const digestOf = (key: string) => createHash('sha256').update(key).digest('base64url');
  const changes = [
    ...Object.entries(plans).map(([key, plan]) => ({ key: { digest: digestOf(key), plan } })),
    ...pets.map((pet: object, index: number) => ({ pet: { id: index + 1, ...pet } })),
  ];
  writeFileSync(join(data, 'petstore.log'), changes.map((change) => `${JSON.stringify(change)}\n`).join(''));
  const program = join(data, 'petstore.mjs'); // as JavaScript, which starts sooner
  writeFileSync(program, transformSync(read('docs/small/petstore.ts'), { loader: 'ts' }).code);
  const child = spawn(process.execPath, [program, '--port', '0', '--data', data]);
  t.after(() => child.kill());
  const [bytes] = await once(child.stdout, 'data');
  return /http\S+(?=\/v1\n)/.exec(String(bytes))![0];
}

test('it passes every row of the contract but those that its table counts', async (t) => {
  const failed = new Map(PROMISES.map((name) => [name, 0]));
  const groups = GROUPS.filter(({ settings }) => Object.keys(settings).length === 0);
  assert.equal(GROUPS.length - groups.length, 3, 'groups with settings that it lacks; README.md counts them');
  const unexplained: string[] = [];
  let passed = 0;
  for (const { name: group, rows } of groups) {
    const [first, second, unknown] = [0, 1, 2].map(() => makeKey('production'));
    const sent = {
      first,
      second,
      unknown,
      staging: makeKey('staging'),
      mistyped: `${first.slice(0, -1)}${first.endsWith('a') ? 'b' : 'a'}`,
    };
    const keys = new Map(Object.entries(sent).map(([name, key]) => [name, `Bearer ${key}`]));
    const origin = await startSmall(t, { [first]: 'business', [second]: 'pro' });
    for (const row of rows) {
      const failure = await tryRow(origin, row, keys).then(
        () => undefined,
        (error: Error) => error,
      );
      const name = Object.keys(FAILS_BY).find((one) => FAILS_BY[one](row, group));
      if (failure === undefined) passed++;
      else if (name === undefined) unexplained.push(`${titleOf(row)}: ${failure.message}`);
      else failed.set(name, failed.get(name)! + 1);
    }
  }
  assert.deepEqual(unexplained, []);
  const linesIn = (file: string) => read(`docs/small/${file}`).split('\n').length - 1;
  const lines = linesIn('petstore.ts');
  const counted = read(README)
    .replace(/in one file of \d+ lines/, `in one file of ${lines} lines`)
    .replace(/all five mends, in \d+ lines/, `all five mends, in ${linesIn('mended.ts')} lines`)
    .replace(/a log in \d+ lines/, `a log in ${linesIn('log.ts')} lines`)
    .replace(/passes the other \d+/, `passes the other ${passed}`)
    .replace(PROMISE, (_, row, name) => `${row} | ${failed.get(name)} |`);
  written(new URL(`../${README}`, import.meta.url), counted);
});

/** A row of the second table of the README, up to its count: an exercise, and the lines of one answer. */
const EXERCISE = /^(\| `([\w-]+)` \| .* \| )\d+(?= \| .* \|$)/gm;

test('it counts the lines of one answer to each exercise', () => {
  const text = read(README);
  assert.deepEqual(
    [...text.matchAll(EXERCISE)].map(([, , name]) => name),
    Object.keys(EXERCISES),
  );
  const answerTo = (name: string) => Object.values(EXERCISES[name].right)[0];
  const counted = text.replace(EXERCISE, (_, row, name) => `${row}${linesOf(answerTo(name))}`);
  written(new URL(`../${README}`, import.meta.url), counted);
});

const COMPACTED = '      await this.#disk.rename(path, join(this.#dir, NAME));';
const RENAMED = `${COMPACTED}\n      await this.#disk.syncDirectory(this.#dir);`;
const SET_SYNC = '      await this.#disk.sync(this.#fd);\n';
const BEFORE_NEXT_REPLY = `${SET_SYNC}      if (this.#isRenamed) await this.#disk.syncDirectory(this.#dir);\n      this.#isRenamed = false;\n`;
/** Edits of docs/small/log.ts, and whether they mend it. */
const LOGS: Record<string, { isKept: boolean; edits: readonly (readonly [string, string])[] }> = {
  'as it is': { isKept: false, edits: [] },
  'the directory is synced after the rename': { isKept: true, edits: [[COMPACTED, RENAMED]] },
  'the directory is synced before the next reply': {
    isKept: true,
    edits: [
      ['  #fd: number;', '  #fd: number;\n  #isRenamed = false;'],
      [COMPACTED, `${COMPACTED}\n      this.#isRenamed = true;`],
      [SET_SYNC, BEFORE_NEXT_REPLY],
    ],
  },
  'nothing waits for the sync of the directory': {
    isKept: false,
    edits: [[COMPACTED, RENAMED.replace(/await(?= .*sync)/, 'void')]],
  },
  'nothing waits for the rename': { isKept: false, edits: [[COMPACTED, RENAMED.replace('await', 'void')]] },
  'something else is synced': { isKept: false, edits: [[COMPACTED, RENAMED.replace('(this.#dir)', '(path)')]] },
  'nothing is compacted': {
    isKept: false,
    edits: [
      [
        '    return this.#exclusively(async () => {\n      const lines',
        '    return this.#exclusively(async () => {\n      if (this.#fd) return;\n      const lines',
      ],
    ],
  },
  'a change never ends': {
    isKept: false,
    edits: [[SET_SYNC, `${SET_SYNC}      await new Promise(() => {});\n`]],
  },
  'it does not open': {
    isKept: false,
    edits: [
      ['    const path = join(dir, NAME);', "    throw new Error('not yet');\n    const path = join(dir, NAME);"],
    ],
  },
  'the directory is synced before the rename': {
    isKept: false,
    edits: [[COMPACTED, RENAMED.split('\n').reverse().join('\n')]],
  },
  'the file is synced once more': {
    isKept: false,
    edits: [[COMPACTED, `${COMPACTED}\n      await this.#disk.sync(fd);`]],
  },
  'the new file is not synced': {
    isKept: false,
    edits: [
      [COMPACTED, RENAMED],
      ['      await this.#disk.sync(fd);\n', ''],
    ],
  },
  'a start does not sync the directory': {
    isKept: false,
    edits: [
      [COMPACTED, RENAMED],
      ['    await disk.syncDirectory(dir);\n', ''],
    ],
  },
  'a start does not sync the file': {
    isKept: false,
    edits: [
      [COMPACTED, RENAMED],
      ['    await disk.sync(fd);\n', ''],
    ],
  },
  'a change is not synced': {
    isKept: false,
    edits: [
      [COMPACTED, RENAMED],
      [SET_SYNC, ''],
    ],
  },
  'others see a change before it is synced': {
    isKept: false,
    edits: [
      [COMPACTED, RENAMED],
      ['      this.#pairs.set(key, value);\n', ''],
      [
        '      const line = encode(key, value);\n',
        '      const line = encode(key, value);\n      this.#pairs.set(key, value);\n',
      ],
    ],
  },
};

const BROKEN =
  /^broken: (a start after |a kill|a power failure|at '[a-z ]+' others see|after a compaction|without any crash)/;

test('exercise six: crashes find the sync that is missing, and each other one', { concurrency: 4 }, async (t) => {
  const dir = await temporary(t);
  const { outputFiles } = await build({
    entryPoints: [join(ROOT, 'docs/small/crash.ts')],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
  });
  writeFileSync(join(dir, 'crash.mjs'), outputFiles[0].text);
  const log = read('docs/small/log.ts');
  const tried = Object.entries(LOGS).map(([what, { isKept, edits }], index) =>
    t.test(`${what}: ${isKept ? 'kept' : 'broken'}`, async () => {
      const copy = join(dir, `${index}.mjs`);
      writeFileSync(copy, transformSync(mended(log, edits), { loader: 'ts' }).code);
      const child = spawn(process.execPath, [join(dir, 'crash.mjs'), '--of', copy]);
      const [told, [status]] = await Promise.all([child.stdout.toArray(), once(child, 'close')]);
      assert.match(String(Buffer.concat(told)), isKept ? /^kept: / : BROKEN);
      assert.equal(status, isKept ? 0 : 1);
    }),
  );
  await Promise.all(tried);
});
