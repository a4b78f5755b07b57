/** `node --import tsx --test docs/exercises/torn-or-damaged.check.ts` */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DamagedError } from '../../src/store/file/format.ts';
import { readFile } from '../../src/store/file/read.ts';
import { DIR } from '../../test/faults/sim-disk.ts';
import { damaged, FILE, writtenFile } from '../../test/faults/written-file.ts';
import { attempt } from './attempt.ts';
import type { Verdict } from './torn-or-damaged.ts';

const { judge } = await attempt<typeof import('./torn-or-damaged.ts')>('torn-or-damaged');

const SECTOR_BYTES = 512;
/** A header, the state it began with, and four batches of four records each. */
const { disk, bytes, batches } = await writtenFile(false);
const headerEnd = bytes.indexOf('\n') + 1;
const thirdEnd = batches[3].end;
const lines = bytes.toString().split(/(?<=\n)/);

/** What the store itself makes of it. */
async function storeSays(file: Buffer): Promise<Verdict> {
  try {
    const { torn } = await readFile(damaged(disk, FILE, file), `${DIR}/${FILE}`);
    return torn === undefined ? 'whole' : 'torn';
  } catch (error) {
    if (error instanceof DamagedError) return 'damaged';
    throw error;
  }
}

async function agree(what: string, file: Buffer): Promise<void> {
  assert.equal(judge(file), await storeSays(file), `${what}; the store's verdict is the one expected`);
}

describe('torn-or-damaged', () => {
  it('takes a file whose last batch was cut off for torn, and one that ends with a batch for whole', async () => {
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
      const files = {
        'has a changed byte': lines.with(at, lines[at].replace('"op"', '"oq"')),
        'stands there twice': lines.toSpliced(at, 0, lines[at]),
        'is missing': lines.toSpliced(at, 1),
      };
      for (const [what, file] of Object.entries(files)) await agree(`line ${at} ${what}`, Buffer.from(file.join('')));
    }
    await agree('another byte in place of the last line feed', Buffer.from(bytes).fill('x', bytes.length - 1));
  });
});
