/** What a newer version has written is refused as that by every command, and never called damaged. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeLine, encodeLine } from '../../src/store/log-format.ts';
import { workplace } from './workplace.ts';

const IS_NEWER = /written by a newer version of petstore, in format 6/;

test('a store and a backup of a newer version are refused by every command, unchanged', async (t) => {
  const { at, run, done } = await workplace(t);
  await done('keys create --plan free');
  const file = at('data/store.jsonl');
  const [first] = readFileSync(file, 'utf8').split('\n');
  const { crc: _, ...header } = decodeLine(Buffer.from(first)) ?? {};
  const newer = [{ ...header, format: 6 }, { rows: { pets: [{ id: 1, bornOn: '2026-11-29' }] } }];
  const bytes = Buffer.concat(newer.map((line) => encodeLine(JSON.stringify(line))));
  for (const name of [file, at('backup')]) writeFileSync(name, bytes);
  const before = readdirSync(at('data'));
  for (const line of ['verify', 'serve --port 0', 'restore backup --data other', 'keys list', 'export', 'compact']) {
    const { exit, stdout, stderr } = await run(line);
    assert.deepEqual([exit, IS_NEWER.test(stderr), /damage/.test(stderr)], [1, true, false], stdout + stderr);
  }
  assert.deepEqual([readdirSync(at('data')), readFileSync(file)], [before, bytes]);
});
