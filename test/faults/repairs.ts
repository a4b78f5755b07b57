/** Repair on the simulated disk, with the power failing at every file call of it. Part of row 10. */
import { DamagedError } from '../../src/store/damage.ts';
import { recover } from '../../src/store/recovery.ts';
import { repair } from '../../src/store/repair.ts';
import { prove } from '../../src/store/snapshot.ts';
import type { Report } from './row.ts';
import type { Random, SimDisk } from './sim-disk.ts';
import { DIR } from './workload.ts';
import { damaged, LOG, type Written, writtenLog } from './written-log.ts';

const FATES = 4;

/** A byte of the log is changed so that its line is no JSON any more. */
function broken(written: Written, at: number): Buffer {
  const bytes = Buffer.from(written.bytes);
  bytes[bytes.indexOf('"batch"', at)] = 1;
  return bytes;
}

/** At any moment the damaged file is there, as it was or as a copy; and the store is damaged, or repaired. */
async function judge(disk: SimDisk, bytes: Buffer, repaired: string): Promise<string | undefined> {
  const isKept = disk.list().some((name) => name.startsWith(LOG) && disk.bytes(name).equals(bytes));
  if (!isKept) return 'the damaged file is gone';
  try {
    return prove((await recover(disk, DIR)).state).digest === repaired ? undefined : 'neither damaged nor repaired';
  } catch (error) {
    return error instanceof DamagedError ? undefined : (error as Error).message;
  }
}

export async function tryRepairs(report: Report, random: Random): Promise<void> {
  const written = await writtenLog(false);
  for (const batch of written.batches.slice(0, -1)) {
    const bytes = broken(written, batch.end);
    const disk = damaged(written.disk, LOG, bytes);
    const moments: SimDisk[] = [];
    disk.onCall = () => moments.push(disk.copy());
    const { damage, proof } = await repair(DIR, { disk, lock: false });
    const lines = bytes.subarray(0, damage?.offset).toString('latin1').split('\n').length - 2;
    if ((await recover(disk, DIR)).state.counts().pets > lines) report.fail('repair kept what stands after the damage');
    for (const moment of [...moments, disk]) {
      for (let i = 0; i < FATES; i++) {
        report.cases++;
        const wrong = await judge(moment.afterPowerLoss(random), bytes, proof.digest);
        if (wrong !== undefined) report.fail(`repair of a log damaged at ${damage?.offset}: ${wrong}`);
        if (report.isOver()) return;
      }
    }
  }
}
