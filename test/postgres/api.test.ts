/** The table of the API against the program on a database: what a client sees does not tell the engine. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { it } from 'node:test';
import { Database, missing } from './database.ts';

it('the API is the same on PostgreSQL', { skip: missing }, async (t) => {
  const database = await Database.start();
  t.after(() => database.stop());
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const words = ['--import', 'tsx', '--test', '--test-reporter=tap', 'test/api.test.ts'];
  const store = database.url('').replace('?schema=', '');
  const child = spawn(process.execPath, words, { env: { ...env, PETSTORE_TEST_STORE: store } });
  let said = '';
  child.stdout.on('data', (text) => (said += text));
  const [status] = await once(child, 'close');
  assert.equal(status, 0, said);
  assert.ok(
    (await database.query("SELECT FROM pg_tables WHERE tablename = 'log'")).length > 3,
    'it ran on the database',
  );
});
