/** No two readers of the same bytes, of which the service is one, disagree about where a request ends. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort, temporary } from '../program.ts';
import { closed, exchange, told } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { until } from '../until.ts';
import { CASES, KEY } from './smuggling.ts';

const PROBE = 'GET /v1/probe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const BATCH = 8;

test(`${CASES.length} messages: what has not one meaning is refused, and nothing behind it is done`, async (t) => {
  assert.ok(CASES.length >= 220);
  const seen: (string | undefined)[] = [];
  const { port, key } = await serviceFor(t, { onReply: ({ target }) => seen.push(target) });
  for (const { name, bytes, verdict } of CASES) {
    seen.length = 0;
    const sent = Buffer.from(bytes.replaceAll(KEY, key) + PROBE, 'latin1');
    const replies = told(await exchange(port, sent, { end: true }));
    assert.ok(!seen.includes('/v1/smuggled'), `${name}: ${seen}`);
    if (verdict === 'bad') {
      assert.match(replies.join(), /^(?:400|431|413) close$/, name);
      assert.ok(seen.length <= 1, `${name}: ${seen}`);
    } else if (verdict === 'good') {
      assert.deepEqual(replies, ['400 keep-alive', '401 close'], name);
      assert.deepEqual(seen.sort(), ['/v1/pets', '/v1/probe'], name);
    }
    assert.match(replies.at(-1) ?? '', / close$/, name);
  }
});

/** How each is started with a file of settings, and what stands in that. */
const PROXIES: Record<string, [start: string, config: (port: number, to: number, dir: string) => string]> = {
  nginx: [
    '-e stderr -c',
    (port, to, dir) => `
      daemon off; master_process off; pid ${dir}/pid; error_log stderr crit;
      events {}
      http {
        access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/f;
        uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
        upstream service { server 127.0.0.1:${to}; keepalive 2; }
        server {
          listen 127.0.0.1:${port}; underscores_in_headers on; ignore_invalid_headers off;
          location / {
            proxy_pass http://service; proxy_http_version 1.1; proxy_request_buffering off;
            proxy_set_header Connection ""; proxy_set_header X-Front 1;
          }
        }
      }`,
  ],
  haproxy: [
    '-db -q -f',
    (port, to) => `
      defaults
        mode http
        timeout connect 60s
        timeout client 60s
        timeout server 60s
        http-reuse always
      frontend front
        bind 127.0.0.1:${port}
        http-request set-header X-Front 1
        default_backend service
      backend service
        server one 127.0.0.1:${to}
`,
  ],
};

/** For what is surely answered, however busy the machine is. */
const ANSWER_MAX_MS = 60_000;

/** What comes back, until the other side ends or has said nothing for a while; it may end in any way. */
async function send(port: number, bytes: string, ms = 150): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (part) => (text += part));
  socket.write(Buffer.from(bytes, 'latin1'));
  await Promise.race([closed(socket), wait(ms, undefined, { ref: false })]);
  socket.destroy();
  return text;
}

for (const [name, [words, config]] of Object.entries(PROXIES)) {
  const isThere = spawnSync(name, ['-v']).error === undefined;
  test(`the same messages through ${name}: nothing becomes a request that it has not sent as one`, {
    skip: isThere ? false : `there is no ${name} on this machine`,
  }, async (t) => {
    const service = await serviceFor(t);
    /** What came as a request: where from, and for what. */
    const seen: string[] = [];
    service.service.server.on('request', ({ url, rawHeaders }: IncomingMessage) =>
      seen.push(`${rawHeaders.some((text) => text.toLowerCase() === 'x-front') ? name : 'nobody'} ${url}`),
    );
    const dir = await temporary(t);
    const port = await freePort();
    await writeFile(join(dir, 'config'), config(port, service.port, dir));
    const proxy = spawn(name, [...words.split(' '), join(dir, 'config')], { stdio: ['ignore', 'ignore', 'inherit'] });
    t.after(() => proxy.kill('SIGKILL'));
    await until(async () => (await send(port, PROBE, ANSWER_MAX_MS)).startsWith('HTTP/1.1 401'));
    for (let at = 0; at < CASES.length; at += BATCH) {
      const batch = CASES.slice(at, at + BATCH);
      await Promise.all(batch.map(({ bytes }) => send(port, bytes.replaceAll(KEY, service.key))));
      // Whoever comes next, on the connections that were used, gets the reply to what was asked.
      for (const reply of await Promise.all([PROBE, PROBE, PROBE].map((probe) => send(port, probe, ANSWER_MAX_MS)))) {
        assert.match(reply, /^HTTP\/1\.1 (?:401|429) /, batch.map((one) => one.name).join('; '));
      }
    }
    assert.deepEqual(
      seen.filter((one) => one.startsWith('nobody')),
      [],
    );
    assert.ok(seen.filter((one) => one.endsWith('/v1/pets')).length > 5, 'some were sent on');
  });
}
