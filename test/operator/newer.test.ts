/** What a newer version has written is refused as that by every command, and never called damaged. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { decodeLine, encodeLine } from '../../src/store/log-format.ts';
import { workplace } from './workplace.ts';

const PET = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };
/** What such a version writes behind the header, and what is said of it. */
const NEWER: Record<string, [header: object, line: object, message: string]> = {
  'in another format': [{ format: 6 }, { rows: {} }, 'in format 6'],
  'with a member that is new': [{}, { rows: { pets: [{ ...PET, bornOn: '2026-11-29' }] } }, 'the member bornOn'],
  'with a table that is new': [{}, { rows: { shops: [{ id: 1 }] } }, 'the table shops'],
};

for (const [how, [change, line, message]] of Object.entries(NEWER)) {
  test(`a store and a backup of a newer version ${how} are refused by every command, unchanged`, async (t) => {
    const { at, run, done } = await workplace(t);
    await done('keys create --plan free');
    const file = at('data/store.jsonl');
    const [first] = readFileSync(file, 'utf8').split('\n');
    const { crc: _, ...header } = decodeLine(Buffer.from(first)) ?? {};
    const newer = [{ ...header, ...change }, line];
    const bytes = Buffer.concat(newer.map((line) => encodeLine(JSON.stringify(line))));
    for (const name of [file, at('backup')]) writeFileSync(name, bytes);
    const before = readdirSync(at('data'));
    const isNewer = new RegExp(`written by a newer version of petstore[,:] ${message}`);
    for (const line of ['verify', 'serve --port 0', 'restore backup --data other', 'keys list', 'export', 'compact']) {
      const { exit, stdout, stderr } = await run(line);
      assert.deepEqual([exit, isNewer.test(stderr), /damage/.test(stderr)], [1, true, false], stdout + stderr);
    }
    assert.deepEqual([readdirSync(at('data')), readFileSync(file)], [before, bytes]);
  });
}
