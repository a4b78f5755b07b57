import assert from 'node:assert/strict';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { program, temporary } from '../program.ts';

const ANIMALS = 1_500;

/** A compacted store with a key and animals, in `data`; and what runs commands beside it. */
async function compacted(t: TestContext) {
  const cwd = await temporary(t);
  const run = (line: string) => program(line.split(' '), { cwd });
  const say = async (line: string) => {
    const { exit, stdout, stderr } = await run(line);
    assert.equal(exit, 0, stderr);
    return stdout;
  };
  const data = path.join(cwd, 'data');
  await say('keys create --plan free --name shop');
  await writeFile(path.join(cwd, 'many.jsonl'), '{"name":"n","categoryId":1}\n'.repeat(ANIMALS));
  await writeFile(path.join(cwd, 'one.jsonl'), '{"name":"one","categoryId":1}\n');
  await say('import many.jsonl');
  await say('compact');
  const snapshot = path.join(data, (await readdir(data)).find((name) => name.startsWith('snapshot-'))!);
  return { data, snapshot, run, say };
}

test('after damage to a snapshot repair gives no id again, and tells what was lost', async (t) => {
  const { data, snapshot, run, say } = await compacted(t);
  await writeFile(snapshot, (await readFile(snapshot, 'utf8')).replace('"nextPetId"', '"nextpetId"'));
  assert.equal((await run('verify')).exit, 3);
  await cp(data, `${data}2`, { recursive: true });
  assert.match(await say('repair'), /^lost for certain +1,500 animals, 1 key \(now revoked\)$/m);
  const { lost, keys } = JSON.parse(await say('repair --json --data data2'));
  assert.deepEqual(lost, { pets: ANIMALS, orders: 0, categories: 0, keys: 1, others: 0 });
  assert.equal(keys, 1);
  await say('verify');
  const [k1] = JSON.parse(await say('keys list --json'));
  assert.deepEqual([k1.id, k1.name, typeof k1.revokedAt], ['k1', 'shop', 'string']);
  assert.match(await say('keys create --plan pro'), /Key k2/);
  await say('import one.jsonl');
  assert.match(await say('export'), /^\{"id":1501,"name":"one"/);
});

test('a key that cannot be read at all is there as a revoked one', async (t) => {
  const { snapshot, say } = await compacted(t);
  await writeFile(snapshot, (await readFile(snapshot, 'utf8')).replace('"name":"shop"', '"name":"Shop"'));
  assert.match(await say('repair'), /^lost for certain +1 key \(now revoked\)$/m);
  assert.match(await say('keys list'), /^k1 +lost +free +0 +0 +production +[-0-9]+ +[-0-9]+$/m);
  assert.equal(JSON.parse(await say('keys show k1 --json')).name, 'lost');
  assert.match(await say('keys create --plan pro'), /Key k2/);
});

test('where repair cannot help the message says so, names what is missing, and sends nobody in a circle', async (t) => {
  const { snapshot, run, say } = await compacted(t);
  await say('import one.jsonl');
  const bytes = await readFile(snapshot, 'utf8');
  const refused = async (what: RegExp) => {
    for (const line of ['serve --port 0', 'verify', 'repair']) {
      const { exit, stderr } = await run(line);
      assert.equal(exit, 3);
      assert.match(stderr, what);
      assert.match(stderr, /snapshot-.*repair cannot help.*Restore a backup into an empty directory/);
      assert.doesNotMatch(stderr, /petstore repair/);
    }
  };
  await writeFile(snapshot, bytes.replace('petstore', 'Petstore'));
  await refused(/offset 0: the checksum is wrong/);
  await rm(snapshot);
  await refused(/the file is missing, its log is not empty/);
});
