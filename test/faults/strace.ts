/** One life of the driver with a system call of it failed or killed by strace, and what must hold afterwards. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { realDisk } from '../../src/store/file/disk.ts';
import { openStore } from '../../src/store/file/open.ts';
import { recover } from '../../src/store/file/rewrite.ts';
import { prove } from '../../src/store/record.ts';
import { State } from '../../src/store/state.ts';
import type { Report } from './row.ts';
import { unlocked } from './sim-disk.ts';

const LONGEST_RUN_MS = 120_000;
/** More files than a life of the driver makes. */
const FILES = 8;

/** Calls on these paths only are counted and failed: not those of the runtime as it starts. */
function paths(dir: string): string[] {
  const files = Array.from({ length: FILES }, (_, i) => `store-${String(i + 1).padStart(6, '0')}.jsonl`);
  return [dir, ...['LOCK', ...files, ...files.map((name) => `${name}.tmp`)].map((name) => join(dir, name))];
}

export interface Life {
  status: number | null;
  signal: string | null;
  sent: number[];
  acknowledged: number[];
  full: number[];
  output: string;
  /** Whether the call was reached. */
  wasHit: boolean;
}

export function readLife(output: string): Pick<Life, 'sent' | 'acknowledged' | 'full'> {
  const ids = (word: string) =>
    [...output.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map((match) => Number(match[1]));
  return { sent: ids('sent'), acknowledged: ids('acknowledged'), full: ids('full') };
}

export function live(driver: string, dir: string, injection: string): Life {
  const call = injection.split(':')[0];
  const filter = injection.includes(':error=') ? ['--seccomp-bpf'] : []; // as in test/program.ts
  const trace = ['-f', ...filter, '-qq', '-e', `trace=${call}`, '-e', `inject=${injection}`];
  const only = paths(dir).flatMap((path) => ['-P', path]);
  const ran = spawnSync('strace', [...trace, ...only, process.execPath, driver, dir, 'work'], {
    encoding: 'utf8',
    timeout: LONGEST_RUN_MS,
    // One thread does all file work, so that `when=N` counts all of it.
    env: { ...process.env, UV_THREADPOOL_SIZE: '1' },
  });
  const wasHit = /\(INJECTED\)|killed by SIGKILL/.test(ran.stderr) || ran.signal === 'SIGKILL' || ran.status === 137;
  return { status: ran.status, signal: ran.signal, output: ran.stdout + ran.stderr, wasHit, ...readLife(ran.stdout) };
}

async function stateIn(dir: string): Promise<State> {
  const state = new State();
  await recover(realDisk, dir, state);
  return state;
}

/**
 * acknowledged ⊆ recovered ⊆ sent, each with its idempotency record; recovering twice changes nothing; and the store
 * takes writes again.
 */
export async function judge(dir: string, life: Pick<Life, 'sent' | 'acknowledged'>): Promise<string | undefined> {
  const state = await stateIn(dir);
  state.check();
  const recovered = state.pets.page(0, 1_000).items.map((pet) => pet.id);
  const lost = life.acknowledged.filter((id) => !recovered.includes(id));
  if (lost.length > 0) return `acknowledged and lost: ${lost}`;
  const invented = recovered.filter((id) => !life.sent.includes(id));
  if (invented.length > 0) return `never sent: ${invented}`;
  const bare = recovered.filter((id) => state.onces.get(`addPet\nk1\nonce-${id}`)?.id !== id);
  if (bare.length > 0) return `without idempotency record: ${bare}`;
  const { digest } = prove(state);
  for (let again = 0; again < 2; again++) {
    const { store } = await openStore(dir, { disk: unlocked() });
    if (prove(await stateIn(dir)).digest !== digest) return 'recovering again changed something';
    if (again === 1)
      await store.write((ahead) => ({ op: 'setCategory', category: { id: ahead.counters.nextPetId, name: 'x' } }));
    await store.close();
  }
  return undefined;
}

/** Injects the fault at the 1st, 2nd, 3rd … call until it is no longer reached. */
export async function atEveryCall(
  report: Report,
  driver: string,
  root: string,
  calls: string[],
  fault: string,
  step: number,
  check: (life: Life) => string | undefined,
): Promise<void> {
  for (const call of calls) {
    for (let n = 1; ; n += step) {
      const dir = join(root, 'data');
      rmSync(dir, { recursive: true, force: true });
      const life = live(driver, dir, `${call}:${fault}:when=${n}`);
      if (!life.wasHit) {
        if (life.status !== 0) report.fail(`${call} without a fault: ${life.output}`);
        break;
      }
      report.cases++;
      const wrong = check(life) ?? (await judge(dir, life).catch((error) => error.message));
      if (wrong !== undefined) report.fail(`${call} ${n}, ${fault}: ${wrong}`);
      if (report.isOver()) return;
    }
  }
}
