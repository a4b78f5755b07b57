import { createHash } from 'node:crypto';
import type { Disk } from './disk.ts';
import type { Usage } from './model.ts';
import { header, plainInt64, seal } from './record.ts';
import type { State } from './state.ts';

/** Rows of a table in one line of a snapshot: some ten kilobytes. */
const ROWS_PER_LINE = 512;
const WRITE_BYTES = 1024 * 1024;

/** Where the logs go on after a snapshot. */
export interface Position {
  seq: number;
  batch: number;
}

/** What is in a store, to compare two of them. The digest is SHA-256 over the lines that hold the state. */
export interface Proof {
  pets: number;
  orders: number;
  categories: number;
  keys: number;
  digest: string;
}

/**
 * The state as lines, each a JSON object without its opening brace. The same state gives the same lines, whatever
 * files it came from. They are numbered, so that none can be missing, double or out of place.
 */
function* stateLines(state: State): Generator<string> {
  let number = 0;
  for (const body of stateParts(state)) yield `"line":${++number},${body}`;
}

/** Tables are in columns; rows of a part have consecutive ids, `-` in `statuses` is no row. */
function* stateParts(state: State): Generator<string> {
  yield `"counters":${JSON.stringify({ nextPetId: state.nextPetId, nextOrderId: state.nextOrderId })}}`;
  yield* lists('categories', state.categoryTable.all(), ({ id, name }) => [plainInt64(id), name]);
  for (const ids of runs(state.petTable)) {
    yield `"pets":${JSON.stringify({
      first: ids[0],
      statuses: ids.map((id) => letter(state.petTable, id)).join(''),
      names: ids.map((id) => (state.petTable.has(id) ? state.names.get(id) : '')),
      categoryIds: ids.map((id) => (state.petTable.has(id) ? plainInt64(state.categoryIds.get(id)) : 0)),
    })}}`;
  }
  for (const ids of runs(state.orderTable)) {
    yield `"orders":${JSON.stringify({
      first: ids[0],
      statuses: ids.map((id) => letter(state.orderTable, id)).join(''),
      petIds: ids.map((id) => state.petIds.get(id)),
      placedAts: ids.map((id) => state.placedAts.get(id)),
    })}}`;
  }
  yield* lists('keys', state.keyTable.all(), (key) => key);
  yield* lists('usage', usages(state), (usage) => usage);
  yield* lists('onces', state.onces.entries(), (entry) => entry);
}

interface Rows {
  has(id: number): boolean;
  status(id: number): string;
  nextAfter(after: number): number;
}

function letter(rows: Rows, id: number): string {
  return rows.has(id) ? rows.status(id)[0] : '-';
}

/** Ids in blocks of ROWS_PER_LINE, each from its first row to its last; a block without rows is left out. */
function* runs(rows: Rows): Generator<number[]> {
  for (let first = rows.nextAfter(-1); first !== -1; ) {
    const end = (Math.floor(first / ROWS_PER_LINE) + 1) * ROWS_PER_LINE;
    const ids: number[] = [];
    let next = first;
    for (; next !== -1 && next < end; next = rows.nextAfter(next)) {
      for (let id = first + ids.length; id <= next; id++) ids.push(id);
    }
    yield ids;
    first = next;
  }
}

function* lists<T>(name: string, items: Iterable<T>, plain: (item: T) => unknown): Generator<string> {
  let rows: unknown[] = [];
  for (const item of items) {
    rows.push(plain(item));
    if (rows.length < ROWS_PER_LINE) continue;
    yield `"${name}":${JSON.stringify(rows)}}`;
    rows = [];
  }
  if (rows.length > 0) yield `"${name}":${JSON.stringify(rows)}}`;
}

function* usages(state: State): Generator<Usage> {
  for (const key of state.keys()) {
    const usage = state.usage(key.id);
    if (usage) yield usage;
  }
}

export function prove(state: State): Proof {
  const hash = createHash('sha256');
  for (const body of stateLines(state)) hash.update(body).update('\n');
  return { ...state.counts(), digest: hash.digest('hex') };
}

/** Writes a whole snapshot into an empty file, and makes it durable. */
export async function writeSnapshot(
  disk: Disk,
  fd: number,
  state: State,
  about: { store: string; generation: number } & Position,
): Promise<Proof> {
  const hash = createHash('sha256');
  let text = header('snapshot', about.store, about.generation, `,"seq":${about.seq},"batch":${about.batch}`);
  let offset = 0;
  const flush = async () => {
    const bytes = Buffer.from(text);
    await disk.write(fd, bytes, offset);
    offset += bytes.length;
    text = '';
  };
  let lines = 0;
  for (const body of stateLines(state)) {
    lines++;
    hash.update(body).update('\n');
    text += seal(body);
    if (text.length >= WRITE_BYTES) await flush();
  }
  const proof = { ...state.counts(), digest: hash.digest('hex') };
  text += seal(`"line":${lines + 1},"end":${JSON.stringify(proof)}}`);
  await flush();
  await disk.sync(fd);
  return proof;
}
