/** 10,100 silent connections of one address, and how long another waits: wants a machine that does nothing else. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort, serving, temporary } from '../program.ts';

const CROWD = 10_100;
const MAX_OF_ADDRESS = 2_000;
const MAX_GROWN_MB = 150;
/** After that the first of them are over their time, and others come in. */
const MAX_CROWD_MS = 10_000;
/** Whoever opens them has a process of its own: what it takes is no time of the service. */
const OPENER = `
  require('os').setPriority(19); // who floods has machines of its own
  const [port, count] = process.argv.slice(1).map(Number);
  const open = (left) => {
    for (let i = 0; i < Math.min(left, 200); i++) {
      require('net').connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {}).resume();
    }
    if (left > 200) setImmediate(open, left - 200);
    else console.log('opened');
  };
  open(count);
  setInterval(() => {}, 1_000);`;

async function readyMs(port: number): Promise<number> {
  const began = performance.now();
  const asked = http.get({ port, host: '127.0.0.1', localAddress: '127.0.0.3', path: '/readyz', agent: false });
  const [reply] = await once(asked, 'response');
  await once(reply.resume(), 'end');
  assert.equal(reply.statusCode, 200);
  return performance.now() - began;
}

const descriptors = Number(/^Max open files +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
const skip = descriptors < CROWD + 200 && `${descriptors} descriptors are too few (ulimit -n)`;

test(`${CROWD} silent connections of one address: /readyz of another within a second throughout`, {
  skip,
}, async (t) => {
  const metricsPort = await freePort();
  const server = await serving(t, ['--data', await temporary(t), '--metrics', `127.0.0.1:${metricsPort}`]);
  const port = Number(new URL(server.url).port);
  const rssMb = () =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1]) / 1024;
  const before = rssMb();
  const opener = spawn(process.execPath, ['-e', OPENER, String(port), String(CROWD)]);
  t.after(() => opener.kill('SIGKILL'));
  const counted = async () => {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return Number(/connections_refused_total\{bound="address"\} (\d+)/.exec(text)?.[1]);
  };
  const asked: Promise<number>[] = [];
  let refused = 0;
  for (const end = performance.now() + MAX_CROWD_MS; refused < CROWD - MAX_OF_ADDRESS; await wait(50)) {
    if (performance.now() > end) break;
    asked.push(readyMs(port));
    refused = await counted();
  }
  for (let more = 0; more < 40; more++, await wait(50)) asked.push(readyMs(port)); // while the rest stay silent
  const slowest = Math.max(...(await Promise.all(asked)));
  t.diagnostic(
    `${asked.length} answers, the slowest after ${Math.round(slowest)} ms; +${Math.round(rssMb() - before)} MB`,
  );
  assert.equal(refused, CROWD - MAX_OF_ADDRESS);
  assert.match(server.stderr(), /connections were refused; counts since the start","maximum":0,"address":\d+/);
  assert.ok(rssMb() - before < MAX_GROWN_MB, `+${rssMb() - before} MB`);
  assert.ok(slowest < 1_000, `/readyz after ${slowest} ms`);
});
