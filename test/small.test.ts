/** The small edition in docs/small: which rows of the contract it passes, and that it breaks where its table says so. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { transformSync } from 'esbuild';
import { makeKey } from '../src/access/keys.ts';
import { titleOf, tryRow } from './api/row.ts';
import { GROUPS, type Row } from './api/table.ts';
import { command, temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SMALL = 'docs/small/petstore.ts';
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Promised {
  name: string;
  failingRows: number;
}
/** The rows of the table of promises: the name in the command, and how many rows of the contract fail by it. */
const TABLE: Promised[] = read('docs/small/README.md')
  .split('\n')
  .filter((line) => line.includes('| `npx tsx '))
  .map((line) => {
    const cells = /\| `npx tsx docs\/small\/break\.ts ([\w-]+)` \| `src\/[\w/.-]+` \| (\d+) \|$/.exec(line);
    assert.ok(cells, `a command, a file and a number: ${line}`);
    return { name: cells[1], failingRows: Number(cells[2]) };
  });

const sends = (row: Row, ...names: string[]) => names.some((name) => row.headers?.[name] !== undefined);
/** By which promise a row of the contract can fail. Of several it is the first. */
const FAILS_BY: Record<string, (row: Row, group: string) => boolean> = {
  // Every row of that group rests on those before it.
  'change-pet': (_, group) => group === 'changing and removing animals',
  categories: ({ path }) => path.startsWith('/v1/categories'),
  health: ({ path }) => !path.startsWith('/v1'),
  preflight: ({ method, has }) => method === 'OPTIONS' || has?.allow !== undefined,
  'if-match': (row) => sends(row, 'if-match', 'if-none-match') || row.has?.etag === 'ETAG',
  'repeated-post': (row) => sends(row, 'idempotency-key'),
  int64: ({ path, body, text, says }) => /\d{16}|\d\.0{15}/.test(`${path} ${JSON.stringify(body)} ${text} ${says}`),
  'duplicate-member': ({ code }) => code === 'invalid_json',
  message: ({ code, says, has }) =>
    code !== undefined && (says ?? has?.['accept-encoding'] ?? has?.['accept-patch']) !== undefined,
};

/** As JavaScript, which starts sooner. */
async function smallProgram(t: TestContext): Promise<string> {
  const file = join(await temporary(t), 'petstore.mjs');
  writeFileSync(file, transformSync(read(SMALL), { loader: 'ts' }).code);
  return file;
}

/** The small edition on a log with these keys and the animals of the seed. */
async function startSmall(t: TestContext, plans: Record<string, string>): Promise<string> {
  const data = await temporary(t);
  const { pets } = JSON.parse(read('data/seed.json'));
  const digestOf = (key: string) => createHash('sha256').update(key).digest('base64url');
  const changes = [
    ...Object.entries(plans).map(([key, plan]) => ({ key: { digest: digestOf(key), plan } })),
    ...pets.map((pet: object, at: number) => ({ pet: { id: at + 1, ...pet } })),
  ];
  writeFileSync(join(data, 'petstore.log'), changes.map((change) => `${JSON.stringify(change)}\n`).join(''));
  const child = spawn(process.execPath, [await smallProgram(t), '--port', '0', '--data', data]);
  t.after(() => child.kill());
  const [bytes] = await once(child.stdout, 'data');
  return /http\S+(?=\/v1\n)/.exec(String(bytes))![0];
}

test('it passes every row of the contract but those that its table counts', async (t) => {
  const failed = new Map(TABLE.map(({ name }) => [name, 0]));
  const groups = GROUPS.filter(({ settings: { categories = 'open', ...others } }) => {
    return categories === 'open' && Object.keys(others).length === 0;
  });
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
  assert.deepEqual(Object.fromEntries(failed), Object.fromEntries(TABLE.map((one) => [one.name, one.failingRows])));
  assert.ok(passed > 140, `${passed} rows are passed`);
});

/** What the commands of the table print, as `name: verdict`. They run at the same time, and start the program as JavaScript. */
async function verdicts(file: string, ...args: string[]): Promise<string[]> {
  const loader = process.execArgv.filter((_, at, all) => all[at] === '--import' || all[at - 1] === '--import');
  const words = [...loader, 'docs/small/break.ts', ...args, '--program', file];
  const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: ROOT });
  return [...stdout.matchAll(/^[\w-]+: \w+(?=: )/gm)].map(([found]) => found).sort();
}
const all = (verdict: string) => TABLE.map(({ name }) => `${name}: ${verdict}`).sort();

test('it breaks every promise of its table, by the command that stands there; the full service breaks none', async (t) => {
  const [, full] = await command();
  const small = verdicts(await smallProgram(t));
  if (full === undefined) t.diagnostic('the full service is not tried: the binary loads no module before its own');
  else assert.deepEqual(await verdicts(full, '--full', ...TABLE.map(({ name }) => name)), all('kept'));
  assert.deepEqual(await small, all('broken'), 'what there is to break, and the table');
});
