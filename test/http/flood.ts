/** A server to be flooded, and processes that flood it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type RunOptions, type Serving, serving, temporary } from '../program.ts';

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));
export const CHUNK_BYTES = 65_536;

/** Why memory cannot be measured here, if it cannot. */
export const NO_PROC = existsSync('/proc/self/status') ? false : 'there is no /proc on this machine';

/** What floods are made of: the shortest that is answered in each way. */
export const FLOODED = (key: string): Record<string, string> => ({
  pages: 'GET /healthz HTTP/1.1\r\nHost:\r\n\r\n',
  document: 'GET /openapi.json HTTP/1.1\r\nHost:\r\n\r\n',
  lists: `GET /v1/pets HTTP/1.1\r\nHost:\r\nAuthorization:Bearer ${key}\r\n\r\n`,
  'without a key': 'GET /v1 HTTP/1.1\r\nHost:\r\n\r\n',
  'refused messages': 'GET / HTTP/1.1\r\n\r\n',
  'no requests': '?',
});

/** The head of a request whose body never ends, in chunks of one byte; and such chunks. */
export const endless = (key?: string): string =>
  `POST /v1/pets HTTP/1.1\r\nHost:\r\nContent-Type:application/json\r\nTransfer-Encoding:chunked\r\n${
    key === undefined ? '' : `Authorization:Bearer ${key}\r\n`
  }\r\n`;
export const ONE_BYTE = '1\r\n \r\n';

/** How long the server took to stop, by its own log. */
export async function stoppingMs(server: Serving): Promise<number> {
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0, stderr);
  const times = [...stderr.matchAll(/"time":"([^"]+)".*"stop(?:ping|ped)"/g)].map(([, at]) => Date.parse(at));
  return times[1] - times[0];
}

export interface Flooded extends Serving {
  /** By how much its memory has grown since it started. */
  grownMB(): number;
  /** The processor time it has used. */
  cpuMs(): number;
  /** The slowest answer of /healthz in so long, and all there were. */
  healthMs(forMs: number): Promise<number[]>;
  /** The same in processor time of the server: what it did first. That is no more where others have the processor. */
  healthCpuMs(forMs: number): Promise<number[]>;
}

export async function startFlooded(t: TestContext, plan = 'business', options: RunOptions = {}): Promise<Flooded> {
  const args = ['--data', await temporary(t), '--seed', pathOf('../../data/seed.json'), '--first-key', plan];
  const server = await serving(t, args, options);
  const { hostname: host, port } = new URL(server.url);
  const healthBy = (time: () => number) => async (forMs: number) => {
    const end = performance.now() + forMs;
    const waits: number[] = [];
    while (performance.now() < end) {
      const began = time();
      const [reply] = await once(http.get({ host, port, path: '/healthz', agent: false }), 'response');
      await once(reply.resume(), 'end');
      waits.push(time() - began);
    }
    return waits.sort((a, b) => b - a);
  };
  const status = () => readFileSync(`/proc/${server.process.pid}/status`, 'latin1');
  const residentMB = () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(status())?.[1]) / 1_024;
  const before = NO_PROC ? 0 : residentMB();
  /** In ticks of 10 ms: what stands behind the name, which may have blanks in it. */
  const ticks = () => {
    const words = readFileSync(`/proc/${server.process.pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return Number(words[11]) + Number(words[12]);
  };
  const cpuMs = () => 10 * ticks();
  const [healthMs, healthCpuMs] = [() => performance.now(), cpuMs].map(healthBy);
  return { ...server, healthMs, healthCpuMs, grownMB: () => residentMB() - before, cpuMs };
}

/** Floods until what it resolves with is called, or the test ends; then tells how often it connected. */
export async function floods(
  t: TestContext,
  { url }: Serving,
  flood: { requests: string[]; connections: number; reads: boolean; head?: string; total?: number },
): Promise<() => Promise<number>> {
  const words = JSON.stringify({ ...flood, bytes: CHUNK_BYTES, port: Number(new URL(url).port) });
  const child = spawn(process.execPath, [pathOf('flood.mjs'), words], { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (text) => (said += text));
  await once(child.stdout, 'data');
  t.after(() => child.stdin.end());
  return async () => {
    child.stdin.end();
    await once(child, 'close');
    return Number(said.split('\n')[1]);
  };
}
