/** Clients that ask for more than they read, or send more than anybody wants: others are served meanwhile. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { workplace } from '../operator/workplace.ts';
import { endless, ONE_BYTE } from '../raw.ts';

const MAX_HEALTH_MS = 5_000;
/** Of a crowd that connects again without pause: node:http parses each packet to its end. */
const MAX_HEALTH_IN_CROWD_MS = 60_000;
/** The service gives up waiting after 10 s; the rest is for a machine that is busy with other things. */
const MAX_STOP_MS = 60_000;
const FLOOD_MS = 1_000;
const TICK_MS = 10;

const requestsFor = (key: string) => [
  'GET /healthz HTTP/1.1\r\nHost:x\r\n\r\n',
  `GET /v1/pets HTTP/1.1\r\nHost:x\r\nAuthorization:Bearer ${key}\r\n\r\n`,
  'GET /v1 HTTP/1.1\r\nHost:x\r\n\r\n',
  'GET / HTTP/1.1\r\n\r\n',
  '?',
];

interface Flood {
  readonly connections: number;
  readonly requests: readonly string[];
  readonly head?: string;
  readonly reads: boolean;
  /** The service may have so much memory for its objects; undefined: as much as Node gives it. */
  readonly heapMB?: number;
  /** It may grow so much; undefined: the process lives, but its memory is not promised. */
  readonly grownMB?: number;
}

/**
 * Each connection sends packets full of one of these requests, after `head`; once it ends, another takes its place.
 */
const FLOODS: Record<string, (key: string) => Flood> = {
  '50 that pipeline 64 KiB, and read': (key) => {
    return { requests: requestsFor(key), connections: 50, reads: true, heapMB: 512, grownMB: 400 };
  },
  '900 that pipeline, and do not read': (key) => ({ requests: requestsFor(key), connections: 900, reads: false }),
  '60 endless bodies in chunks of one byte, by one key': (key) => {
    return { head: endless(key), requests: [ONE_BYTE], connections: 60, reads: true, heapMB: 512, grownMB: 200 };
  },
};

/** The processor time of a process, in ms. */
function cpuMs(pid: number): number {
  const words = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ');
  return TICK_MS * (Number(words[11]) + Number(words[12]));
}

function residentMB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1_024;
}

for (const [name, floodOf] of Object.entries(FLOODS)) {
  test(`${name}: others are served, SIGTERM ends it`, {
    skip: existsSync('/proc/self/status') ? false : 'there is no /proc on this machine',
  }, async (t) => {
    const { serve, key } = await workplace(t);
    const { heapMB, grownMB, ...sent } = floodOf(await key());
    const server = await serve('', { env: heapMB ? { NODE_OPTIONS: `--max-old-space-size=${heapMB}` } : {} });
    const pid = server.process.pid as number;
    const before = residentMB(pid);
    const { port } = new URL(server.url);
    const flood = { port, bytes: 65_536, ...sent };
    const words = [join(import.meta.dirname, 'flood.mjs'), JSON.stringify(flood)];
    const flooder = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(() => flooder.kill('SIGKILL'));
    await once(flooder.stdout, 'data');
    // By the time that the service itself took until it answered, whatever else the machine does.
    let slowest = 0;
    for (const end = performance.now() + FLOOD_MS; performance.now() < end; ) {
      const began = cpuMs(pid);
      const [reply] = await once(http.get({ host: '127.0.0.1', port, path: '/healthz', agent: false }), 'response');
      await once(reply.resume(), 'end');
      slowest = Math.max(slowest, cpuMs(pid) - began);
    }
    const grown = residentMB(pid) - before;
    const began = performance.now();
    assert.equal((await server.stop()).exit, 0);
    const stopped = performance.now() - began;
    t.diagnostic(`/healthz ${slowest} ms, +${Math.round(grown)} MB, stopped in ${Math.round(stopped)} ms`);
    assert.ok(slowest < (flood.connections > 100 ? MAX_HEALTH_IN_CROWD_MS : MAX_HEALTH_MS), `/healthz: ${slowest} ms`);
    if (grownMB !== undefined) assert.ok(grown < grownMB, `+${grown} MB`);
    assert.ok(stopped < MAX_STOP_MS, `stopped after ${stopped} ms`);
  });
}
