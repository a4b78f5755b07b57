/** Replies that leave in one write have the bytes that node:http would write: nobody can tell, nor has to. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { jsonReply, kept } from '../../src/http/reply.ts';
import { everyReply } from './every-reply.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

test('on a Node without the fields that are leaned on every reply is the same, byte for byte', async () => {
  const here = await everyReply();
  const preloaded = ['--import', path('hide.mjs'), ...process.execArgv, path('every-reply.ts')];
  const { stdout } = await promisify(execFile)(process.execPath, preloaded);
  const there = JSON.parse(stdout);
  assert.deepEqual([here.whole, there.whole], ['true', 'false']);
  const all = Object.values(here).join();
  for (const status of [100, 200, 201, 204, 400, 401, 404, 405, 413, 417, 429, 500, 503]) {
    assert.ok(all.includes(`HTTP/1.1 ${status} `), `${status}`);
  }
  assert.deepEqual({ ...there, whole: 'true' }, here);
});

test('this Node knows of a request that it is read without it', () => {
  assert.equal((new IncomingMessage(new Socket()) as unknown as { _consuming: boolean })._consuming, false);
});

test('a header that would not stay on its line is not made', () => {
  assert.throws(() => kept(jsonReply(200, '', ['A', 'b\r\nc'])), /Invalid character/);
});
