/** The machine that the figures were taken on, and how it is shared out between server and load. */
import { accessSync, constants, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Which cores the server and the load run on, where the system lets a process be pinned and has two. */
export interface Cores {
  server: number;
  load: number;
}

export type Fact = [name: string, value: string];

export function programOnPath(name: string): string | undefined {
  const places = (process.env.PATH ?? '').split(path.delimiter).map((folder) => path.join(folder, name));
  return places.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
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

/** Other programs move the figures: how busy the machine was before is told with them. */
export function describeMachine(cores: Cores | undefined): Fact[] {
  return [
    ['Processor', `${os.cpus()[0]?.model.trim() ?? 'unknown'}, ${os.availableParallelism()} cores`],
    ['Memory', `${Math.round(os.totalmem() / 1e9)} GB`],
    ['System', `${os.type()} ${os.release()} ${os.arch()}`],
    ['Node', process.version],
    ['Load average before', os.loadavg()[0].toFixed(2)],
    ['Cores', cores ? `server on ${cores.server}, load on ${cores.load}` : 'not pinned'],
  ];
}
