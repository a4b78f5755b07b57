/** `node --import tsx --test test/exercises/torn-or-damaged.check.ts` */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DamagedError } from '../../src/store/damage.ts';
import { recover } from '../../src/store/recovery.ts';
import { DIR } from '../faults/workload.ts';
import { damaged, LOG, writtenLog } from '../faults/written-log.ts';
import { attempt } from './attempt.ts';
import type { Verdict } from './torn-or-damaged.ts';

const { judge } = await attempt<typeof import('./torn-or-damaged.ts')>('torn-or-damaged');

const SECTOR_BYTES = 512;
/** Four batches of four records each, after the header. */
const { disk, bytes, batches } = await writtenLog(false);
const [headerEnd, , , thirdEnd] = batches.map((batch) => batch.end);
const lines = bytes.toString().split(/(?<=\n)/);

/** What the store itself makes of it. */
async function storeSays(log: Buffer): Promise<Verdict> {
  try {
    const { notices } = await recover(damaged(disk, LOG, log), DIR);
    return notices.length === 0 ? 'whole' : 'torn';
  } catch (error) {
    if (error instanceof DamagedError) return 'damaged';
    throw error;
  }
}

async function agree(what: string, log: Buffer): Promise<void> {
  assert.equal(judge(log), await storeSays(log), `${what}; the store's verdict is the one expected`);
}

describe('torn-or-damaged', () => {
  it('takes a log whose last batch was cut off for torn, or for whole where a line had just ended', async () => {
    for (let end = thirdEnd; end <= bytes.length; end++) await agree(`cut at ${end}`, bytes.subarray(0, end));
  });

  it('takes sectors of the last batch that read as zeros for torn, and of those before for damage', async () => {
    for (let start = headerEnd; start < bytes.length; ) {
      const end = Math.min((Math.floor(start / SECTOR_BYTES) + 1) * SECTOR_BYTES, bytes.length);
      await agree(`zeros from ${start} to ${end}`, Buffer.from(bytes).fill(0, start, end));
      start = start < thirdEnd && thirdEnd < end ? thirdEnd : end;
    }
  });

  it('takes whatever no crash makes for damage: a changed byte, a line twice or missing', async () => {
    for (let at = 1; at < lines.length; at++) {
      const logs = {
        'has a changed byte': lines.with(at, lines[at].replace('"op"', '"oq"')),
        'stands there twice': lines.toSpliced(at, 0, lines[at]),
        'is missing': lines.toSpliced(at, 1),
      };
      for (const [what, log] of Object.entries(logs)) await agree(`record ${at} ${what}`, Buffer.from(log.join('')));
    }
    await agree('another byte in place of the last line feed', Buffer.from(bytes).fill('x', bytes.length - 1));
  });
});
