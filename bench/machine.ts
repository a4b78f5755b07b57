/** The machine that the figures are taken on: its cores, its facts, and what its kernel knows about a process. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import os from 'node:os';

/** The cores of the server and of the load, where a process can be pinned and there are two. */
export interface Cores {
  server: number;
  load: number;
}

/** Of the last minute before the run: 0 is a machine on which nothing else runs. */
export const LOAD = 'Load average before';
const NANOSECONDS = 1e9;

const isOnPath = (program: string) => spawnSync(program, ['--version']).error === undefined;

export function findCores(): Cores | undefined {
  if (process.platform !== 'linux' || !isOnPath('taskset')) return undefined;
  const allowed = /^Cpus_allowed_list:\s+(\S+)/m.exec(read('/proc/self/status') ?? '')?.[1] ?? '';
  const cores = allowed.split(',').flatMap((part) => {
    const [first, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
  return cores.length < 2 ? undefined : { server: cores[0], load: cores[1] };
}

export function pinned(core: number | undefined, command: string[]): string[] {
  return core === undefined ? command : ['taskset', '-c', String(core), ...command];
}

/** How busy the machine was before stands with the figures, because other programs move them. */
export function describeMachine(cores: Cores | undefined): Record<string, string> {
  const processor = `${os.cpus()[0]?.model.trim() ?? 'unknown processor'}, ${os.availableParallelism()} cores`;
  const system = `${os.type()} ${os.release()} ${os.arch()}`;
  const pinned = cores && `the server ran on core ${cores.server} only, the load generator on core ${cores.load}`;
  return {
    Machine: `${processor}, ${Math.round(os.totalmem() / 1e9)} GB of memory, ${system}, Node ${process.version}`,
    Date: new Date().toISOString().slice(0, 10),
    [LOAD]: os.loadavg()[0].toFixed(2),
    Cores: pinned ?? 'the server and the load generator could not be tied to a core each',
  };
}

/** CPU seconds that a process has used; undefined where the kernel does not tell. */
export function cpuSeconds(pid: number): number | undefined {
  if (read(`/proc/${pid}/schedstat`) === undefined) return undefined;
  const threads = readdirSync(`/proc/${pid}/task`).map((id) => read(`/proc/${pid}/task/${id}/schedstat`));
  return threads.reduce((sum, text) => sum + Number(text?.split(' ')[0] ?? 0), 0) / NANOSECONDS;
}

/** Resident memory of a process in megabytes (10^6 bytes); NaN where there is no /proc. */
export function residentMb(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '');
  return (Number(line?.[1]) * 1024) / 1e6;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}
