/** The nginx of docs/nginx.conf, before any upstream: on a port, and with a certificate, of the test's own. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { Agent, fetch } from 'undici';
import { missing } from './operator/workplace.ts';
import { freePort, temporary } from './program.ts';

/** For a test's `skip`. */
export const withoutNginx = missing('nginx', '-v') || missing('openssl', 'version');

async function nginxConfig(dir: string, listen: { tls: number; plain: number }, upstream: string): Promise<string> {
  const [key, certificate] = ['privkey.pem', 'fullchain.pem'].map((name) => path.join(dir, name));
  const words = 'req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=api.example -keyout'.split(' ');
  assert.equal(spawnSync('openssl', [...words, key, '-out', certificate]).status, 0);
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = temporary.map((name) => `${name}_temp_path ${dir}/${name};`).join('\n');
  const config = readFileSync(new URL('../docs/nginx.conf', import.meta.url), 'utf8')
    .replace('listen 443 ssl', `listen 127.0.0.1:${listen.tls} ssl`)
    .replace('listen 80', `listen 127.0.0.1:${listen.plain}`)
    .replace(/ *listen \[::\].*\n/g, '')
    .replace('127.0.0.1:8080', upstream)
    .replace('/etc/ssl/petstore/fullchain.pem', certificate)
    .replace('/etc/ssl/petstore/privkey.pem', key)
    .replace('http {', `http {\n${paths}`);
  const file = path.join(dir, 'nginx.conf');
  await writeFile(file, config);
  return file;
}

/** `upstream`: host and port. What is returned trusts the certificate. */
export async function startNginx(t: TestContext, upstream: string) {
  const cwd = await temporary(t);
  const dir = path.join(cwd, 'nginx');
  await mkdir(dir);
  chmodSync(cwd, 0o755);
  const listen = { tls: await freePort(), plain: await freePort() };
  const file = await nginxConfig(dir, listen, upstream);
  const log = path.join(dir, 'error.log');
  const words = ['-p', dir, '-c', file, '-e', log];
  const own = `pid ${dir}/pid; error_log ${log};`;
  const { status, stderr } = spawnSync('nginx', ['-t', ...words, '-g', own], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const inFront = `daemon off; master_process off; ${own}`;
  const nginx = spawn('nginx', [...words, '-g', inFront], { stdio: 'ignore' });
  const ended = once(nginx, 'exit');
  t.after(() => nginx.kill('SIGTERM') && ended);
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  t.after(() => dispatcher.destroy());
  const url = `https://127.0.0.1:${listen.tls}`;
  while (!(await fetch(url, { dispatcher }).catch(() => undefined))) {
    assert.equal(nginx.exitCode, null, 'nginx did not start');
    await wait(50);
  }
  return { url, dispatcher, plain: `http://127.0.0.1:${listen.plain}` };
}
