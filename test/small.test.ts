/** The small edition in docs/small: which rows of the contract it passes. small.slow.test.ts breaks it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { makeKey } from '../src/access/keys.ts';
import { titleOf, tryRow } from './api/row.ts';
import { GROUPS, type Row } from './api/table.ts';
import { EXERCISES, linesOf } from './mends.ts';
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
  const lines = read('docs/small/petstore.ts').split('\n').length - 1;
  const counted = read(README)
    .replace(/in one file of \d+ lines/, `in one file of ${lines} lines`)
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
