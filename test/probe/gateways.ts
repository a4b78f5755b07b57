/** Real gateways, each with a configuration of few lines, in front of one address. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, chmodSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort, temporary } from '../program.ts';

const START_MAX_MS = 120_000;

export interface Gateway {
  program: string;
  version: string;
  /** The words that start it, and the file that they name. */
  start(file: string, dir: string, listen: number, origin: number): string[];
  config(listen: number, origin: number, dir: string): string;
}

export const nginxMain = (dir: string, rest: string): string => `
  daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error.log;
  events {}
  http {
    access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy; fastcgi_temp_path ${dir}/f;
    uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
    ${rest}
  }`;

const nginx = (location: string): Gateway => ({
  program: 'nginx',
  version: '-v',
  start: (file, dir) => ['-e', `${dir}/error.log`, '-c', file],
  config: (listen, origin, dir) =>
    nginxMain(
      dir,
      `upstream origin { server 127.0.0.1:${origin}; ${location && 'keepalive 4;'} }
       server { listen 127.0.0.1:${listen}; location / { proxy_pass http://origin; ${location} } }`,
    ),
});

const HAPROXY_DEFAULTS = `
defaults
  mode http
  timeout connect 2s
  timeout client 70s
  timeout server 70s
`;

export const GATEWAYS: Record<string, Gateway> = {
  nginx: nginx(''),
  'nginx with kept connections': nginx('proxy_http_version 1.1; proxy_set_header Connection "";'),
  haproxy: {
    program: 'haproxy',
    version: '-v',
    start: (file) => ['-db', '-q', '-f', file],
    config: (listen, origin) =>
      `${HAPROXY_DEFAULTS}frontend f\n  bind 127.0.0.1:${listen}\n  default_backend b\nbackend b\n  server o 127.0.0.1:${origin}\n`,
  },
  varnish: {
    program: 'varnishd',
    version: '-V',
    start: (file, dir, listen) => [
      '-F',
      '-n',
      join(dir, 'work'),
      '-f',
      file,
      '-a',
      `127.0.0.1:${listen}`,
      '-s',
      'malloc,16m',
    ],
    config: (_, origin) => `vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "${origin}"; }\n`,
  },
  caddy: {
    program: 'caddy',
    version: 'version',
    start: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    config: (listen, origin, dir) =>
      `{\n admin off\n auto_https off\n storage file_system ${dir}\n}\nhttp://:${listen} {\n bind 127.0.0.1\n reverse_proxy 127.0.0.1:${origin}\n}\n`,
  },
};

/** docs/haproxy.cfg as it stands, with one origin and a certificate of the test's own. */
export const SAMPLE: Gateway = {
  ...GATEWAYS.haproxy,
  config: (listen, origin, dir) => {
    const [key, pem] = [join(dir, 'key'), join(dir, 'pem')];
    const words = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=api.example -keyout ${key} -out ${pem}`;
    assert.equal(spawnSync('openssl', words.split(' ')).status, 0);
    appendFileSync(pem, readFileSync(key));
    return readFileSync(new URL('../../docs/haproxy.cfg', import.meta.url), 'utf8')
      .replace('bind :443', `bind 127.0.0.1:${listen}`)
      .replace('/etc/ssl/petstore/petstore.pem', pem)
      .replace(/shop[12]:8080/g, `127.0.0.1:${origin}`);
  },
};

/** False where it can be run; else why not. */
export const whyNot = (name: string): false | string => {
  const { program, version } = GATEWAYS[name];
  return spawnSync(program, [version]).error === undefined ? false : `there is no ${program} on this machine`;
};

/** Starts it before the address `origin`; ends it with the test. */
export async function gatewayFor(t: TestContext, gateway: Gateway, origin: number): Promise<string> {
  const dir = await temporary(t);
  chmodSync(dir, 0o755);
  await mkdir(join(dir, 'data'));
  const listen = await freePort();
  const file = join(dir, 'config');
  await writeFile(file, gateway.config(listen, origin, join(dir, 'data')));
  const words = gateway.start(file, join(dir, 'data'), listen, origin);
  const child = spawn(gateway.program, words, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: dir },
  });
  let stderr = '';
  child.stderr.on('data', (text) => (stderr += text));
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  for (const over = Date.now() + START_MAX_MS; !(await isOpen(listen)); await wait(50)) {
    assert.ok(Date.now() < over && child.exitCode === null, `${gateway.program} did not start: ${stderr}`);
  }
  return `http://127.0.0.1:${listen}`;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
