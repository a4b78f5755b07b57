/** Backups, for both engines: a snapshot in the lines of the file format. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Proof } from '../engine.ts';
import { DamagedError } from '../errors.ts';
import { type Snapshot, Tables } from '../tables.ts';
import { type Header, readLog, rowLines, snapshotLines } from './log-format.ts';

/** Lines between which other work has its turn. */
const LINES_AT_ONCE = 4;

/** What a snapshot is proved by. */
export async function prove(snapshot: Snapshot): Promise<Proof> {
  const lines = rowLines(snapshot);
  for (let n = 1; ; n++) {
    const { done, value } = lines.next();
    if (done) return value;
    if (n % LINES_AT_ONCE === 0) await nextTurn();
  }
}

export async function* backupLines(header: Header, snapshot: Snapshot): AsyncGenerator<Uint8Array, Proof> {
  return yield* snapshotLines({ ...header, file: 0 }, snapshot);
}

/** Reads a backup, or a copy of the file of a store, into new tables. `name`: for messages. */
export async function readBackup(name: string, lines: AsyncIterable<Uint8Array>) {
  const tables = new Tables();
  const advice = 'Nothing was changed. It is no backup, or was changed or cut after it was written.';
  const { header, length, tornBytes } = await readLog(name, lines, tables, advice);
  if (tornBytes > 0) throw new DamagedError(`${name}, offset ${length}`, 'it ends within a line', advice);
  const snapshot = tables.snapshot(header.at);
  return { header, snapshot, proof: await prove(snapshot) };
}
