import { createHash } from 'node:crypto';
import type { Disk } from './disk.ts';
import { header, plainInt64, seal } from './record.ts';
import type { State } from './state.ts';

/** Rows of a table in one line of a snapshot: some ten kilobytes. */
const ROWS_PER_LINE = 512;
const WRITE_BYTES = 1024 * 1024;

/** A state, and where it stands: the newest record that is in it. */
export interface Held {
  state: State;
  /** Undefined: there is no store here yet. */
  store: string | undefined;
  seq: number;
  batch: number;
}

/** What is in a store, to compare two of them. The digest is SHA-256 over the lines that hold the state. */
export interface Proof extends ReturnType<State['counts']> {
  digest: string;
}

/** Writes a whole snapshot into a new file, and makes it durable. */
export async function writeSnapshot(
  disk: Disk,
  path: string,
  { state, store, seq, batch }: Held & { store: string },
  generation: number,
): Promise<Proof> {
  const hash = createHash('sha256');
  let lines = 0;
  let text = header('snapshot', store, generation, `,"seq":${seq},"batch":${batch}`);
  let offset = 0;
  const fd = await disk.create(path);
  // Made durable piece by piece: behind much that is still to be written, a log's fdatasync would have to wait.
  const flush = async () => {
    const bytes = Buffer.from(text);
    await disk.write(fd, bytes, offset);
    await disk.sync(fd);
    offset += bytes.length;
    text = '';
  };
  try {
    for (const body of stateLines(state)) {
      lines++;
      hash.update(body).update('\n');
      text += seal(body);
      if (text.length >= WRITE_BYTES) await flush();
    }
    const proof = { ...state.counts(), digest: hash.digest('hex') };
    text += seal(`"line":${lines + 1},"end":${JSON.stringify(proof)}}`);
    await flush();
    return proof;
  } finally {
    disk.close(fd);
  }
}

export function prove(state: State): Proof {
  const hash = createHash('sha256');
  for (const body of stateLines(state)) hash.update(body).update('\n');
  return { ...state.counts(), digest: hash.digest('hex') };
}

/**
 * The state as lines, each a JSON object without its opening brace. The same state gives the same lines, whatever
 * files it came from. They are numbered, so that none can be missing, double or out of place.
 */
function* stateLines(state: State): Generator<string> {
  let number = 0;
  for (const body of stateParts(state)) yield `"line":${++number},${body}`;
}

function* stateParts(state: State): Generator<string> {
  yield `"counters":${JSON.stringify(state.counters)}}`;
  const categories = state.categoryTable.page(undefined, Number.POSITIVE_INFINITY).items;
  yield* lists('categories', categories, ({ id, name }) => [plainInt64(id), name]);
  yield* columns('pets', state.petTable, {
    names: (id) => state.names.get(id),
    categoryIds: (id) => plainInt64(state.categoryIds.get(id)),
  });
  yield* columns('orders', state.orderTable, {
    petIds: (id) => state.petIds.get(id),
    placedAts: (id) => state.placedAts.get(id),
  });
  yield* lists('keys', state.keyTable.values(), (key) => key);
  yield* lists('usage', state.keyTable.keys(), (id) => state.usageTable.get(id));
  yield* lists('onces', state.onces, ([place, made]) => [...place.split('\n'), made]);
}

/**
 * A table: in each line rows of consecutive ids, a status is its first letter, and `-` is no row. Ids go in blocks of
 * ROWS_PER_LINE, each from its first row to its last; a block without rows is left out.
 */
function* columns(
  name: string,
  rows: State['petTable'] | State['orderTable'],
  cells: Record<string, (id: number) => unknown>,
): Generator<string> {
  for (let first = rows.nextAfter(-1); first !== -1; ) {
    const end = (Math.floor(first / ROWS_PER_LINE) + 1) * ROWS_PER_LINE;
    const ids: number[] = [];
    let next = first;
    for (; next !== -1 && next < end; next = rows.nextAfter(next)) {
      for (let id = first + ids.length; id <= next; id++) ids.push(id);
    }
    const statuses = ids.map((id) => (rows.has(id) ? rows.status(id)[0] : '-')).join('');
    const values = Object.entries(cells).map(([column, cell]) => [column, ids.map(cell)]);
    yield `"${name}":${JSON.stringify({ first, statuses, ...Object.fromEntries(values) })}}`;
    first = next;
  }
}

/** What there is of each item, many in a line. */
function* lists<T>(name: string, items: Iterable<T>, plain: (item: T) => unknown): Generator<string> {
  let rows: unknown[] = [];
  for (const item of items) {
    const row = plain(item);
    if (row !== undefined) rows.push(row);
    if (rows.length < ROWS_PER_LINE) continue;
    yield `"${name}":${JSON.stringify(rows)}}`;
    rows = [];
  }
  if (rows.length > 0) yield `"${name}":${JSON.stringify(rows)}}`;
}
