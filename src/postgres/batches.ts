/**
 * A batch as it lies in the table `log`: a line for each operation, with its checksum as in a data file
 * (docs/formats.md), and what it changes of limits.
 */
import { isSealed, SEAL_BYTES, seal } from '../store/file/format.ts';
import { type Operation, StoreError } from '../store/model.ts';
import { decode, type Entry, encode } from '../store/record.ts';
import type { State } from '../store/state.ts';
import type { Row, Statement } from './link.ts';
import { APPEND, FENCE_SLOT, TAIL_BYTES, TAIL_ROWS, TAKE } from './sql.ts';

/** A place in the one history of a store. */
export interface Place {
  batch: number;
  id: string;
}

/** What the engine cannot go on from: the log is another one than it knows, was trimmed, or cannot be read. */
export class HistoryError extends StoreError {
  constructor(message: string) {
    super('unavailable', message);
  }
}

/** Each line of a text from the database, and the text that stands for it alone. */
export function* decodeLines(text: string, what: string): Generator<{ entry: Entry; encoded: string }> {
  for (let start = 0, feed = text.indexOf('\n'); feed !== -1; start = feed + 1, feed = text.indexOf('\n', start)) {
    const line = text.slice(start, feed);
    if (!isSealed(Buffer.from(line))) throw new HistoryError(`${what}: a checksum is wrong`);
    yield { entry: decode(JSON.parse(line)), encoded: line.slice(SEAL_BYTES) };
  }
}

/** What was written behind `place`, which is the first row itself. It is a commit, too: see FENCE_SLOT. */
export function tailStatement(place: Place): Statement {
  return { name: 'take', text: TAKE, values: [[FENCE_SLOT], [0], place.batch, 0] };
}

/** Whether there may be more behind these rows. */
export function isCut(rows: Row[]): boolean {
  const characters = rows.reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
  return rows.length === TAIL_ROWS || 3 * characters >= TAIL_BYTES; // UTF-8 takes three bytes for a character at most
}

/** The statement that appends operations as the batch behind `before`. */
export function appendStatement(operations: Operation[], id: string, before: Place, state: State): Statement {
  const body = operations.map((operation) => seal(encode(operation))).join('');
  const changes = limitChanges(operations, state);
  const columns = [0, 1, 2, 3].map((column) => changes.map((change) => change[column]));
  return { name: 'append', text: APPEND, values: [before.batch + 1, id, body, before.id, ...columns] };
}

/** By slot: what a key may take a minute and a day, and how many ms have passed for it alone. */
function limitChanges(operations: Operation[], state: State): number[][] {
  const changes = new Map<string, number[]>();
  for (const operation of operations) {
    if (operation.op !== 'setKey' && operation.op !== 'advance') continue;
    const key = operation.op === 'setKey' ? operation.key : state.key(operation.key)!;
    const [slot, perMinute, perDay, passed] = changes.get(key.id) ?? [key.slot, key.perMinute, key.perDay, 0];
    if (operation.op === 'advance') changes.set(key.id, [slot, perMinute, perDay, passed + operation.ms]);
    else changes.set(key.id, [key.slot, key.perMinute, key.perDay, passed]);
  }
  return [...changes.values()].sort(([a], [b]) => a - b);
}
