import { MAX_KEYS } from '../ahead.ts';
import { MAX_SLOTS } from '../model.ts';
import type { Counters } from '../operations.ts';
import { prove } from '../record.ts';
import { State } from '../state.ts';
import { keepBeside } from './directory.ts';
import { realDisk } from './disk.ts';
import { BEYOND_REPAIR, fileName } from './format.ts';
import { takeLock } from './lock.ts';
import type { DirectoryOptions } from './open.ts';
import { goOnIn, recover } from './rewrite.ts';

/** More are never given in the life of a file: no memory holds so many animals or orders. */
const LEAPS: Counters = { nextPetId: 1_000_000_000, nextOrderId: 1_000_000_000, nextSlot: MAX_KEYS };

/**
 * Blunt: keeps what stands before the damage, and nothing that stands behind it. But what was given there somebody may
 * know, and what was taken away there must not come back. So ids leap, further than any store gives them; and all keys
 * are revoked, for each may have been, or one of its secrets ended.
 *
 * The damaged file is kept beside, durable, before it loses its name. Without damage nothing is changed.
 */
export async function repair(dir: string, { disk = realDisk, lock = true, isAlive, progress }: DirectoryOptions = {}) {
  const taken = lock ? await takeLock(dir, isAlive) : undefined;
  try {
    const state = new State();
    const found = await recover(disk, dir, state, { salvage: true, progress });
    if (!found) throw new Error(`there is no store in ${dir}`);
    const { header, batch, damage } = found;
    const revoked: string[] = [];
    let kept: string | undefined;
    if (damage) {
      leap(state.counters, header.counters);
      for (const key of [...state.keys()].filter(({ revokedAt }) => revokedAt === undefined)) {
        state.keyTable.set(key.id, { ...key, revokedAt: Date.now() });
        revoked.push(key.id);
      }
      kept = await keepBeside(disk, dir, fileName(header.file));
      await goOnIn(disk, dir, { ...header, file: header.file + 1, first: batch + 1 }, state);
    }
    const { error, batches: lostBatches = 0, bytes: lostBytes = 0 } = damage ?? {};
    return { damage: error, kept, lostBatches, lostBytes, revoked, ...state.counters, proof: prove(state) };
  } finally {
    taken?.release();
  }
}

/** `begun`: when the file was. Where the state that it began with is cut, they are higher than what was read of it. */
function leap(counters: Counters, begun: Counters = counters): void {
  for (const name of Object.keys(LEAPS) as (keyof Counters)[]) {
    counters[name] = Math.max(counters[name], begun[name]) + LEAPS[name];
  }
  if (counters.nextSlot + MAX_KEYS > MAX_SLOTS) throw new Error(`it was repaired too often. ${BEYOND_REPAIR}`);
}
