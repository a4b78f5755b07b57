/** What stands at the first bad place of a file: torn, as a crash may leave it, or damaged. */
import { decode, VersionError } from '../change-json.ts';
import { isSealed, LINE_FEED, MAX_BATCH_BYTES, parsed } from './format.ts';

const SECTOR_BYTES = 512;

/** What of the file is whole. */
export interface Whole {
  /** The number of the last whole batch; one less than that of the first, until that is whole. */
  batch: number;
  /** Where it ends. */
  length: number;
  /** Behind it, the file says that the store was closed: everything before is durable. */
  isClosed: boolean;
}

/** How far the file was durable, as `LOCK` knows it. */
export interface Known {
  batch: number;
  /** Of the file. */
  length: number;
  /** Whether it must end with the record of a close. Asked at the end: a server beside us may have opened it. */
  isClosed(): boolean;
}

/** In which way the file ends before what is known to have been durable; undefined: it does not. */
export function shortOf({ batch, isClosed }: Whole, known: Known): string | undefined {
  const copied =
    'the rest is lost, or this is a copy that was made while a server ran (`petstore backup` makes a whole one)';
  if (batch < known.batch)
    return `batch ${known.batch} was durable, and batch ${batch} is the last one here: ${copied}`;
  return !isClosed && known.isClosed()
    ? 'the store was closed, and the record that says so is not at its end'
    : undefined;
}

/**
 * Of what stands from the first bad place on: whether a crash may have left it, the highest batch it tells, and how
 * many animals and orders were made in the lines that can still be read.
 */
export function judge(rest: Buffer, offset: number, found: Whole) {
  const { batch, length, isClosed } = found;
  let isTorn = length > 0 && !isClosed && rest.length <= MAX_BATCH_BYTES;
  let [lastBatch, pets, orders] = [batch, 0, 0];
  for (let from = 0; from < rest.length; ) {
    const feed = rest.indexOf(LINE_FEED, from);
    const line = rest.subarray(from, feed === -1 ? rest.length : feed);
    const record = line.subarray(line.lastIndexOf(0) + 1); // it may begin where zeros end
    if (isSealed(record)) {
      const told = lineOf(record);
      if (told.batch !== batch + 1) isTorn = false; // the one that should stand here was durable; or it is nonsense
      lastBatch = Math.max(lastBatch, told.batch);
      pets += told.pets;
      orders += told.orders;
    }
    // A crash leaves sectors unwritten, but changes no byte. So a record that is whole but for its line feed is damage,
    // unless that byte is the zero of a sector never written.
    const isUnwritten = line.at(-1) === 0 && (offset + rest.length - 1) % SECTOR_BYTES === 0;
    if (feed === -1 && !isUnwritten && isSealed(line.subarray(0, -1))) isTorn = false;
    from = feed === -1 ? rest.length : feed + 1;
  }
  return { isTorn: isTorn && (rest.at(-1) !== LINE_FEED || hasUnwrittenSector(rest, offset)), lastBatch, pets, orders };
}

/** Of a line whose checksum is right; batch 0: it is none of a batch. Throws where a newer program wrote it. */
function lineOf(record: Buffer): { batch: number; pets: number; orders: number } {
  const line = parsed(record) ?? {};
  const nothing = { pets: 0, orders: 0 };
  try {
    const batch = Number.isSafeInteger(line.batch) ? (line.batch as number) : 0;
    if (batch === 0 || line.op === 'close') return { batch, ...nothing };
    const entry = decode(line);
    const pets = entry.op === 'pets' ? entry.names.length : Number(entry.op === 'addPet');
    const orders = entry.op === 'orders' ? entry.petIds.length : Number(entry.op === 'placeOrder');
    return { batch, pets, orders };
  } catch (error) {
    if (error instanceof VersionError) throw error;
    return { batch: 0, ...nothing };
  }
}

function hasUnwrittenSector(bytes: Buffer, offset: number): boolean {
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + SECTOR_BYTES - ((offset + from) % SECTOR_BYTES));
    if (bytes.subarray(from, to).every((byte) => byte === 0)) return true;
    from = to;
  }
  return false;
}
