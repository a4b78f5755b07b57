/** Floods from a process of their own, against a service in another: what it takes of memory, and how long others wait. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Why memory cannot be measured here, if it cannot. */
export const NO_PROC = existsSync('/proc/self/status') ? false : 'there is no /proc on this machine';

/** The head of a request whose body never ends, in chunks of one byte; and such chunks. */
export const endless = (key?: string): string =>
  `POST /v1/pets HTTP/1.1\r\nHost:x\r\nContent-Type:application/json\r\nTransfer-Encoding:chunked\r\n${
    key === undefined ? '' : `Authorization:Bearer ${key}\r\n`
  }\r\n`;
export const ONE_BYTE = '1\r\n \r\n';

const TICK_MS = 10;

/** A service in a process of its own, with a heap of 512 MB. */
export async function startFlooded(t: TestContext) {
  const words = ['--max-old-space-size=512', ...process.execArgv.filter((word) => !word.startsWith('--test'))];
  const child = spawn(process.execPath, [...words, pathOf('flooded.ts')], { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const { port, key } = JSON.parse(String(line)) as { port: number; key: string };
  const residentMB = () => {
    const status = readFileSync(`/proc/${child.pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
  };
  const before = residentMB();
  /** The processor time of the service, in ms. */
  const cpuMs = () => {
    const [, rest] = readFileSync(`/proc/${child.pid}/stat`, 'latin1').split(') ');
    const words = rest.split(' ');
    return TICK_MS * (Number(words[11]) + Number(words[12]));
  };
  /**
   * The slowest answer of /healthz in so long, each on a connection of its own: by the processor time that the service
   * took meanwhile, which is the time that it takes where others do not have the processor.
   */
  const healthMs = async (forMs: number): Promise<number> => {
    let slowest = 0;
    for (const end = performance.now() + forMs; performance.now() < end; ) {
      const began = cpuMs();
      const [reply] = await once(http.get({ host: '127.0.0.1', port, path: '/healthz', agent: false }), 'response');
      await once(reply.resume(), 'end');
      slowest = Math.max(slowest, cpuMs() - began);
    }
    return slowest;
  };
  /** How long it takes to stop. */
  const stop = async (): Promise<number> => {
    const began = performance.now();
    child.kill('SIGTERM');
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
    return performance.now() - began;
  };
  return { port, key, healthMs, stop, grownMB: () => residentMB() - before };
}

interface Flood {
  readonly port: number;
  /** Each connection sends packets full of one of these, after `head`; once it ends, another takes its place. */
  readonly requests: readonly string[];
  readonly head?: string;
  readonly connections: number;
  readonly reads: boolean;
}

/** Floods until the test ends. */
export async function flood(t: TestContext, flood: Flood): Promise<void> {
  const words = [pathOf('flood.mjs'), JSON.stringify({ ...flood, bytes: 65_536 })];
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
}
