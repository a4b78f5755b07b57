/** A reply is sent as one string by a private field of node:http; a Node without it sends the same bytes. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { IncomingMessage } from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { CAN_SEND_AS_ONE } from '../../src/http/reply.ts';
import { temporary } from '../program.ts';
import { requestsOf } from '../raw.ts';
import { startService } from '../service.ts';

const PET = '{"name":"Zoë 🐈","categoryId":9007199254740993}';
const LENGTH = `Content-Length: ${Buffer.byteLength(PET)}\r\n`;

/** All bytes that come back, by what was sent. */
async function everyReply(): Promise<Record<string, string>> {
  const service = await startService({ corsOrigin: 'https://x.example' });
  const of = requestsOf((await service.makeKey()).text);
  const poor = requestsOf((await service.makeKey('enterprise', { perMinute: 1, perDay: 1 })).text);
  const head = of.get('', '/v1/pets/1').replace('GET', 'HEAD');
  const rows: Record<string, string> = {
    'a write, and reads behind it': of.post(LENGTH, PET) + of.get() + of.get('', '/v1/pets/1') + head,
    'a 304': of.get('If-None-Match: *\r\n'),
    'no content': of.get().replace('GET', 'OPTIONS'),
    refusals:
      of.get('', '/v1/x') + of.get('', '/v1/pets?a') + of.get().replace('GET', 'PUT') + of.post(LENGTH, `[${PET}`),
    'a limit': poor.get() + poor.get(),
    'a body that is too large': of.post('Content-Length: 70000\r\n'),
    'a refusal before the body': of.post('Content-Length: 70000\r\n', '', 'POST /v1/x HTTP/1.1'),
    'HTTP/1.0': of.get('', '/v1/pets', '1.0'),
    'an upgrade': of.get('Connection: Upgrade\r\nUpgrade: x\r\n'),
    'no key': 'GET /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n',
  };
  const replies: Record<string, string> = { whole: String(CAN_SEND_AS_ONE) };
  for (const [name, bytes] of Object.entries(rows)) {
    const socket = net.connect(service.port, '127.0.0.1');
    socket.end(Buffer.from(bytes));
    const came = socket.setEncoding('latin1');
    replies[name] = (await text(came)).replaceAll(/X-Request-Id: \S+/g, 'X-Request-Id: …');
  }
  await service.close();
  return replies;
}

/** Preloaded, it makes this Node one whose own code alone sees `_header`. */
const HIDE = `import { OutgoingMessage } from 'node:http';
const values = new WeakMap();
const isOwn = () => new Error().stack.split('\\n')[3].includes('node:');
Object.defineProperty(OutgoingMessage.prototype, '_header', {
  get() { return isOwn() ? values.get(this) : undefined; },
  set(value) { if (isOwn()) values.set(this, value); },
});`;

const PRINT = 'print';
if (process.argv[2] === PRINT) everyReply().then((replies) => console.log(JSON.stringify(replies)));
else {
  test('on a Node without the field every reply is the same, byte for byte', async (t) => {
    const here = await everyReply();
    const hide = join(await temporary(t), 'hide.mjs');
    writeFileSync(hide, HIDE);
    const words = ['--import', hide, ...process.execArgv, import.meta.filename, PRINT];
    const { stdout } = await promisify(execFile)(process.execPath, words);
    const there = JSON.parse(stdout);
    assert.deepEqual([here.whole, there.whole], ['true', 'false']);
    const all = Object.values(here).join();
    for (const status of [200, 201, 204, 304, 400, 401, 404, 405, 413, 429]) {
      assert.ok(all.includes(`HTTP/1.1 ${status} `), `${status}`);
    }
    assert.deepEqual({ ...there, whole: 'true' }, here);
  });

  test('this Node has the field that says of a request that its body has a reader', () => {
    assert.equal((new IncomingMessage(new net.Socket()) as unknown as { _consuming: boolean })._consuming, false);
  });
}
