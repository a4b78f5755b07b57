/** Replies that leave in one write have the bytes that node:http would write: nobody can tell, nor has to. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { IncomingMessage } from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ApiError } from '../../src/http/errors.ts';
import { CAN_END_WHOLE } from '../../src/http/private.ts';
import { jsonReply, prepared } from '../../src/http/reply.ts';
import { startService } from '../service.ts';

const PET = '{"name":"Zoë 🐈","categoryId":9007199254740993}';
const BODY = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(PET)}\r\n`;
const CLOSE = 'Connection: close\r\n';
const STAY = 'Connection: keep-alive\r\n';

/** Each is a connection of its own; what follows the head and a blank line is the body. */
const ASKED: Record<string, string[]> = {
  'a reply that is kept, twice': ['POST /v1/pets', BODY, PET, 'GET /v1/pets', '', '', 'GET /v1/pets', '', ''],
  'a head alone': ['HEAD /v1/pets', '', '', 'HEAD /v1/pets/1', '', '', 'HEAD /v1/pets/7', '', ''],
  'one animal, and none': ['GET /v1/pets/1', '', '', 'GET /v1/pets/7', '', '', 'GET /v1/pets/1', CLOSE, ''],
  'a page with a link': ['POST /v1/pets', BODY, PET, 'GET /v1/pets?limit=1', '', ''],
  'no path, no method, no parameter': ['GET /v1/x', '', '', 'DELETE /v1/pets', '', '', 'GET /v1/pets?a', '', ''],
  'no content': ['OPTIONS /v1/pets', '', '', 'OPTIONS *', '', '', 'OPTIONS /v1/pets', CLOSE, ''],
  'a bad body': ['POST /v1/pets', BODY, PET.replace('{', '[')],
  'a body that is too large': ['POST /v1/pets', 'Content-Type: application/json\r\nContent-Length: 70000\r\n', ''],
  'a refusal before the body has come': ['POST /v1/x', 'Content-Length: 3\r\n', '', 'GET /v1/pets', '', ''],
  'expected, and met': ['POST /v1/pets', `Expect: 100-continue\r\n${BODY}`, PET, 'GET /v1/pets', '', ''],
  'expected, and not to be met': ['GET /v1/pets', 'Expect: x\r\n', ''],
  'a message that is refused': ['GET /v1/pets', '', '', 'GET /v1/pets', 'Host: y\r\n', ''],
  'an upgrade': ['GET /v1/pets', 'Connection: Upgrade\r\nUpgrade: x\r\n', ''],
  'a tunnel': ['CONNECT x:80', '', ''],
  'a tunnel behind a request': ['GET /v1/pets', '', '', 'CONNECT x:80', '', ''],
  'no request': ['?', '', ''],
  'a fault of ours': ['PUT /v1/categories/1', BODY.replace(/\d+/, '12'), '{"name":"x"}'],
  pages: ['GET /', '', '', 'GET /healthz', '', '', 'GET /readyz', '', '', 'GET /nothing', '', '', 'POST /', '', ''],
};

/** All bytes that come back, by what was asked. */
async function everyReply(): Promise<Record<string, string>> {
  const service = await startService({ corsOrigin: 'https://x.example' });
  const { text: key } = await service.makeKey();
  const { text: poor } = await service.makeKey('enterprise', { perMinute: 1, perDay: 1 });
  const write = service.store.write.bind(service.store);
  service.store.write = (decide) =>
    write((ahead) => {
      const change = decide(ahead);
      if (change.op === 'setCategory') throw new Error('a fault of ours');
      return change;
    });
  const told: Record<string, string> = { whole: String(CAN_END_WHOLE) };
  const ask = async (name: string, version: string, authorization: string, words: string[]) => {
    const socket = net.connect(service.port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (part) => (text += part));
    await once(socket, 'connect');
    for (let i = 0; i < words.length; i += 3) {
      const { length } = text;
      const isAnswered = () => /^HTTP\/1\.1 [2-5]/m.test(text.slice(length)); // a 100 is no reply yet
      socket.write(`${words[i]} HTTP/${version}\r\nHost: x\r\n${authorization}${words[i + 1]}\r\n${words[i + 2]}`);
      while (!isAnswered() && !socket.readableEnded) await wait(2);
    }
    socket.end();
    if (!socket.readableEnded) await once(socket, 'end');
    told[name] = text.replaceAll(/X-Request-Id: \S+/g, 'X-Request-Id: …');
  };
  const authorization = `Authorization: Bearer ${key}\r\n`;
  for (const [name, words] of Object.entries(ASKED)) {
    await ask(name, '1.1', authorization, words);
    await ask(`${name}, in HTTP/1.0`, '1.0', authorization, words);
    await ask(`${name}, in HTTP/1.0 that stays`, '1.0', authorization + STAY, words);
  }
  const list = ['GET /v1/pets', '', ''];
  await ask('no key', '1.1', '', list);
  await ask('a wrong key', '1.1', 'Authorization: Bearer x\r\n', list);
  await ask('limits', '1.1', `Authorization: Bearer ${poor}\r\n`, Array(7).fill(list).flat());
  const once503 = new ApiError('unavailable', 'gone', ['Retry-After', '1']);
  service.store.write = () => Promise.reject(once503);
  await ask('the store fails', '1.1', authorization, ['POST /v1/pets', BODY, PET]);
  await service.close();
  return told;
}

/** This file prints them where it is run so, by a Node that was changed before. */
const PRINT = 'print';
if (process.argv[2] === PRINT) console.log(JSON.stringify(await everyReply()));
else {
  test('on a Node without the fields that are leaned on every reply is the same, byte for byte', async () => {
    const here = await everyReply();
    const hide = fileURLToPath(new URL('hide.mjs', import.meta.url));
    const words = ['--import', hide, ...process.execArgv, import.meta.filename, PRINT];
    const { stdout } = await promisify(execFile)(process.execPath, words);
    const there = JSON.parse(stdout);
    assert.deepEqual([here.whole, there.whole], ['true', 'false']);
    const all = Object.values(here).join();
    for (const status of [100, 200, 201, 204, 400, 401, 404, 405, 413, 417, 429, 500, 503]) {
      assert.ok(all.includes(`HTTP/1.1 ${status} `), `${status}`);
    }
    assert.deepEqual({ ...there, whole: 'true' }, here);
  });

  test('this Node knows of a request that it is read without it', () => {
    assert.equal((new IncomingMessage(new net.Socket()) as unknown as { _consuming: boolean })._consuming, false);
  });

  test('a header that would not stay on its line is not made', () => {
    assert.throws(() => prepared(jsonReply(200, '', ['A', 'b\r\nc'])), /Invalid character/);
  });
}
