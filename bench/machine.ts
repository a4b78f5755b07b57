/** The machine that the figures were taken on, and how it is shared out between server and load. */
import { accessSync, constants, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export interface Machine {
  processor: string;
  cores: number;
  memoryGb: number;
  system: string;
  node: string;
  load: string;
  pinned: string;
}

/** Which cores the server and the load run on, where the system lets a process be pinned and has two. */
export interface Cores {
  server: number;
  load: number;
}

export function programOnPath(name: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not in this folder.
    }
  }
  return undefined;
}

export function findCores(): Cores | undefined {
  if (process.platform !== 'linux' || programOnPath('taskset') === undefined) return undefined;
  const allowed = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '';
  const cores = allowed.split(',').flatMap((part) => {
    const [first, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
  return cores.length < 2 ? undefined : { server: cores[0], load: cores[1] };
}

export function pinned(core: number | undefined, command: string[]): string[] {
  return core === undefined ? command : ['taskset', '-c', String(core), ...command];
}

export function describeMachine(cores: Cores | undefined, wrk: boolean): Machine {
  return {
    processor: os.cpus()[0]?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 1e9),
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
    load: wrk ? 'wrk at saturation, undici at fixed rates' : 'undici (at saturation its own limit is near: see CPU)',
    pinned: cores ? `server on core ${cores.server}, load on core ${cores.load}` : 'not pinned',
  };
}

/** Tells how much of the processor went to others between two looks, where there is /proc. */
export class ProcessorWatch {
  readonly #first = look();

  /** Ours is this process and all its children that have ended. */
  othersShare(): number | undefined {
    const now = look();
    if (now === undefined || this.#first === undefined) return undefined;
    const [busy, all, own] = now.map((ticks, i) => ticks - this.#first![i]);
    return Math.max(0, busy - own) / all;
  }
}

/** In ticks since the machine started: the processor busy, the processor in all, and what is ours. */
function look(): [busy: number, all: number, own: number] | undefined {
  if (process.platform !== 'linux') return undefined;
  const [first] = readFileSync('/proc/stat', 'latin1').split('\n');
  const [user, nice, system, idle, wait, irq, softIrq, stolen] = first.split(/\s+/).slice(1).map(Number);
  const busy = user + nice + system + irq + softIrq + stolen;
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const own = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
  return [busy, busy + idle + wait, own];
}
