/** What docs/ tells operators to install: the systemd unit and the nginx configuration, checked and run. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import https from 'node:https';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { flagOf } from '../../src/operator/arguments.ts';
import { SERVE_OPTIONS } from '../../src/operator/options.ts';
import { freePort, serving, temporary } from '../program.ts';

const doc = (name: string) => readFileSync(fileURLToPath(new URL(`../../docs/${name}`, import.meta.url)), 'utf8');
const missing = (program: string, word: string) =>
  spawnSync(program, [word]).error === undefined ? false : `there is no ${program} on this machine`;

test('the operating guide names every option of serve and every exit status', () => {
  const guide = doc('operating.md');
  for (const key of Object.keys(SERVE_OPTIONS)) assert.ok(guide.includes(`\`${flagOf(key)}`), flagOf(key));
  for (const status of [0, 1, 2, 3, 4]) assert.match(guide, new RegExp(`^\\| ${status} \\| `, 'm'));
});

test('the systemd unit is accepted by systemd', { skip: missing('systemd-analyze', '--version') }, async (t) => {
  const unit = path.join(await temporary(t), 'petstore.service');
  await writeFile(unit, doc('petstore.service').replace('/usr/local/bin/petstore', process.execPath));
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
  assert.deepEqual([status, stdout + stderr], [0, '']);
});

/** The page's configuration as it stands, on a port and with a certificate of the test's own. */
async function nginxConfig(dir: string, listen: number, upstream: string): Promise<string> {
  const [certificate, key] = [path.join(dir, 'cert.pem'), path.join(dir, 'key.pem')];
  const words = 'req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=api.example -keyout'.split(' ');
  assert.equal(spawnSync('openssl', [...words, key, '-out', certificate]).status, 0);
  const site = doc('nginx.conf')
    .replace('listen 443 ssl', `listen 127.0.0.1:${listen} ssl`)
    .replace(/ *listen \[::\].*\n/, '')
    .replace('127.0.0.1:8080', upstream)
    .replace('/etc/ssl/petstore/fullchain.pem', certificate)
    .replace('/etc/ssl/petstore/privkey.pem', key);
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = temp.map((name) => `${name}_temp_path ${dir}/${name};`).join('\n');
  const main = `daemon off;\nmaster_process off;\npid ${dir}/pid;\nerror_log ${dir}/error.log;\nevents {}\n`;
  const file = path.join(dir, 'nginx.conf');
  await writeFile(file, `${main}http {\naccess_log off;\n${paths}\n${site}}\n`);
  return file;
}

function ask(port: number, target: string, headers: Record<string, string>, method = 'GET', body?: string) {
  return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: target, method, headers, rejectUnauthorized: false };
    const request = https.request(options, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      reply.on('end', () => resolve({ status: reply.statusCode!, headers: reply.headers, text }));
    });
    request.on('error', reject).end(body);
  });
}

const noNginx = missing('nginx', '-v') || missing('openssl', 'version');

test('behind nginx: the address of the caller, the errors of the service, and of a service that is away', {
  skip: noNginx,
}, async (t) => {
  const cwd = await temporary(t);
  const dir = path.join(cwd, 'nginx');
  await mkdir(dir);
  chmodSync(cwd, 0o755);
  const server = await serving(t, ['--first-key', 'business', '--trust-proxy', '1', '--access-log'], { cwd });
  const listen = await freePort();
  const file = await nginxConfig(dir, listen, new URL(server.url).host);
  const nginx = spawn('nginx', ['-p', dir, '-c', file, '-e', path.join(dir, 'error.log')], { stdio: 'ignore' });
  t.after(async () => {
    if (nginx.exitCode === null && nginx.kill('SIGTERM')) await once(nginx, 'exit');
  });
  const headers = { authorization: `Bearer ${server.key}` };
  for (let i = 0; ; i++) {
    const up = await ask(listen, '/readyz', {})
      .then(({ status }) => status === 200)
      .catch(() => false);
    if (up) break;
    assert.ok(i < 100 && nginx.exitCode === null, 'nginx did not start');
    await wait(50);
  }
  const json = { ...headers, 'content-type': 'application/json' };
  assert.equal((await ask(listen, '/v1/pets', json, 'POST', '{"name":"Rex","categoryId":1}')).status, 201);
  const forged = { ...headers, 'x-forwarded-for': '203.0.113.7' };
  assert.equal((await ask(listen, '/v1/pets?limit=1', forged)).status, 200);
  assert.equal((await ask(listen, '/v1//pets', headers)).status, 404, 'paths arrive as they were sent');
  const large = await ask(listen, '/v1/pets', json, 'POST', `{"name":"${'n'.repeat(70_000)}"}`);
  assert.deepEqual([large.status, JSON.parse(large.text).code], [413, 'body_too_large']);
  assert.ok('x-request-id' in large.headers);

  const { stderr } = await server.stop();
  assert.match(stderr, /"target":"\/v1\/pets\?limit=1".*"address":"127\.0\.0\.1"/, 'not what the caller wrote himself');
  const away = await ask(listen, '/v1/pets', headers);
  assert.deepEqual([away.status, JSON.parse(away.text).status, away.headers['retry-after']], [503, 503, '1']);
  assert.equal(away.headers['content-type'], 'application/json; charset=utf-8');
});
