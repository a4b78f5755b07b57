/** What an operator is given to watch the service with, held against a server that runs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'node:test';
import { openStore } from '../../src/store/file/open.ts';
import type { Serving } from '../program.ts';
import { workplace } from './workplace.ts';

async function addressOf(server: Serving): Promise<string> {
  while (!server.stderr().includes('"message":"listening"')) await once(server.process.stderr!, 'data');
  return /"metrics":"(http:[^"]+)"/.exec(server.stderr())![1];
}

/** Of a metric without labels. */
const valueIn = (text: string, name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);

test('the metrics tell of the program, its connections, the file, compactions and backups', async (t) => {
  const { at, done, run, json, serve } = await workplace(t);
  const server = await serve('--metrics 127.0.0.1:0');
  const address = await addressOf(server);
  const scrape = async () => (await fetch(address)).text();
  const before = await scrape();
  const { version, commit, runtime } = await json<Record<string, string>>('version');
  const labels = `version="${version}",commit="${commit}",runtime="${runtime}"`;
  assert.ok(before.includes(`\npetstore_build_info{${labels}} 1\n`), before);
  assert.equal(valueIn(before, 'petstore_store_file_bytes'), statSync(at('data/store-000001.jsonl')).size);
  assert.equal(valueIn(before, 'petstore_open_connections'), 0);
  for (const name of ['compactions_total', 'compaction_seconds_total', 'last_backup_timestamp_seconds'])
    assert.equal(valueIn(before, `petstore_${name}`), 0, name);

  const { port } = new URL(server.url);
  const sockets = Array.from({ length: 3 }, () => connect(Number(port), '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await done('keys create --plan free');
  await done('compact');
  const began = Date.now() / 1_000;
  assert.equal((await run('backup one')).stderr, '');
  const after = await scrape();
  assert.equal(valueIn(after, 'petstore_open_connections'), 3);
  assert.equal(valueIn(after, 'petstore_store_file_bytes'), statSync(at('data/store-000002.jsonl')).size);
  assert.equal(valueIn(after, 'petstore_compactions_total'), 1);
  assert.ok(valueIn(after, 'petstore_compaction_seconds_total') > 0.001);
  const toldAt = valueIn(after, 'petstore_last_backup_timestamp_seconds');
  assert.ok(toldAt >= began - 0.001 && toldAt <= Date.now() / 1_000, String(toldAt));
  for (const socket of sockets) socket.destroy();

  assert.equal((await run('backup one')).exit, 1, 'it exists');
  assert.equal(valueIn(await scrape(), 'petstore_last_backup_timestamp_seconds'), toldAt, 'one that failed is none');
  server.process.kill('SIGSTOP');
  const untold = await run('backup two');
  server.process.kill('SIGCONT');
  assert.deepEqual([untold.exit, existsSync(at('two'))], [0, true], untold.stderr);
  assert.match(untold.stderr, /metrics do not show this backup: data is in use by a server that does not answer/);
  assert.equal((await server.stop()).exit, 0);
  const alone = await run('backup three');
  assert.deepEqual([alone.exit, alone.stderr], [0, ''], 'without a server there is nobody to tell');
});

test('a compaction that failed is counted as that, and one that was given up is not', async (t) => {
  const { at } = await workplace(t);
  const { store, journal } = await openStore(at('data'), { compact: () => Promise.reject(new Error('no')) });
  await assert.rejects(journal.compact(), /^Error: no$/);
  journal.giveUp();
  await assert.rejects(journal.compact(), /is being stopped/);
  assert.deepEqual(journal.compactions.counts, { done: 0, failed: 1, ms: 0 });
  await store.close();
});
