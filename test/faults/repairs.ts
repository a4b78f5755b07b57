/** Repair on the simulated disk, with the power failing at every file call of it. Part of row 10. */
import { DamagedError } from '../../src/store/file/format.ts';
import { repair } from '../../src/store/file/tools.ts';
import { prove } from '../../src/store/record.ts';
import type { Report } from './row.ts';
import { DIR, type Random, type SimDisk } from './sim-disk.ts';
import { recovered } from './workload.ts';
import { damaged, FILE, writtenFile } from './written-file.ts';

const FATES = 4;

/** At any moment the damaged file is there, or a copy of it; and the store is damaged, or repaired. */
async function judge(disk: SimDisk, bytes: Buffer, repaired: string): Promise<string | undefined> {
  const isKept = disk.list().some((copy) => copy.startsWith(FILE) && disk.bytes(copy).equals(bytes));
  if (!isKept) return 'the damaged file is gone';
  try {
    return prove(await recovered(disk)).digest === repaired ? undefined : 'neither damaged nor repaired';
  } catch (error) {
    return error instanceof DamagedError ? undefined : (error as Error).message;
  }
}

export async function tryRepairs(report: Report, random: Random): Promise<void> {
  const written = await writtenFile(false);
  for (const { end } of written.batches.slice(0, -1)) {
    const bytes = Buffer.from(written.bytes);
    bytes[bytes.indexOf('"batch"', end)] = 1;
    const disk = damaged(written.disk, FILE, bytes);
    const moments: SimDisk[] = [];
    disk.onCall = () => moments.push(disk.copy());
    const { damage, proof, kept } = await repair(DIR, { disk });
    if (damage?.offset !== end || !disk.bytes(kept!.slice(DIR.length + 1)).equals(bytes))
      report.fail('not kept beside');
    for (const moment of [...moments, disk]) {
      for (let i = 0; i < FATES && !report.isOver(); i++) {
        const what = `repair of what is damaged at ${end}`;
        await report.attempt(what, () => judge(moment.afterPowerLoss(random), bytes, proof.digest));
      }
    }
  }
}
