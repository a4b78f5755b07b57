/** What a newer version has written is refused as that, never called damaged; what an older one has written is opened. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeLine, encodeLine } from '../../src/store/log-format.ts';
import { IS_NEWER, newerProgram } from '../newer.ts';
import { workplace } from './workplace.ts';

test('a store with a column of a newer version is refused by every command, unchanged, and that version goes on', async (t) => {
  const { at, run, done, animals, serve } = await workplace(t);
  const program = await newerProgram(t, 'src/main.ts');
  const byNewer = async (line: string) => {
    const { exit, stdout, stderr } = await run(line, { program });
    assert.equal(exit, 0, `${line}: ${stderr}`);
    return stdout;
  };
  const content = () => readdirSync(at('data')).map((name) => [name, readFileSync(at(`data/${name}`), 'latin1')]);
  const isRefused = async () => {
    const before = content();
    for (const line of ['verify', 'serve --port 0', 'restore backup --data other', 'keys list', 'export']) {
      const { exit, stdout, stderr } = await run(line);
      assert.deepEqual([exit, IS_NEWER.test(stderr), /damage/.test(stderr)], [1, true, false], stdout + stderr);
    }
    assert.deepEqual(content(), before);
  };
  await done('keys create --plan free');
  // It tells of its column before any row has it: a start is enough.
  await (await serve('', { program })).stop();
  await byNewer('backup backup');
  await isRefused();
  await animals(2);
  await byNewer('import in');
  await byNewer('backup with-rows');
  await isRefused();
  assert.match(readFileSync(at('data/store-000002.jsonl'), 'utf8'), /"addedLater":1\}/);
  await byNewer('verify');
  await byNewer('restore with-rows --data other');
});

test('a store whose file does not tell its columns is only read by who reads, and written anew by who writes', async (t) => {
  const { at, done } = await workplace(t);
  await done('keys create --plan free');
  const file = at('data/store-000001.jsonl');
  const [first, ...rest] = readFileSync(file, 'utf8').split('\n');
  const { crc: _, columns, ...header } = decodeLine(Buffer.from(first)) as Record<string, unknown>;
  assert.ok((columns as string[]).includes('keys.secrets.digest'));
  const untold = [encodeLine(JSON.stringify(header)).toString().trimEnd(), ...rest].join('\n');
  writeFileSync(file, untold);
  await done('verify');
  assert.equal(readFileSync(file, 'utf8'), untold);
  const { digest } = JSON.parse(await done('verify --json'));
  await done('keys revoke k1');
  assert.deepEqual(readdirSync(at('data')).sort(), ['LOCK', 'store-000002.jsonl']);
  assert.notEqual(JSON.parse(await done('verify --json')).digest, digest);
  const [again] = readFileSync(at('data/store-000002.jsonl'), 'utf8').split('\n');
  assert.deepEqual(decodeLine(Buffer.from(again))?.columns, columns);
});
