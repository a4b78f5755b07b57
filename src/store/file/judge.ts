/** Judges the first bad place of a file: torn, as a crash may leave it, or damaged. */
import { decode, VersionError } from '../change-json.ts';
import { isSealed, LINE_FEED, MAX_BATCH_BYTES, parsed } from './format.ts';

const SECTOR_BYTES = 512;

/** The part of a file up to its last whole batch. */
export interface WholePart {
  /** The number of the last whole batch; if there is none, the number of the first batch minus one. */
  batch: number;
  /** The offset of its end. */
  length: number;
  /** True if the closing record follows: everything before is durable. */
  isClosed: boolean;
}

/** The part that was durable for certain, according to `LOCK`. */
export interface Known {
  batch: number;
  /** Bytes of the file. */
  length: number;
  /**
   * True if the file must end with the closing record. Called after the file was read: a server may have opened the
   * store meanwhile.
   */
  isClosed(): boolean;
}

/** The fault of a file that ends before its known durable part; undefined: the file is long enough. */
export function shortOf({ batch, isClosed }: WholePart, known: Known): string | undefined {
  const copied =
    'the rest is lost, or this is a copy that was made while a server ran (`petstore backup` makes a whole one)';
  if (batch < known.batch)
    return `batch ${known.batch} was durable, and batch ${batch} is the last one here: ${copied}`;
  return !isClosed && known.isClosed()
    ? 'the store was closed, and the record that says so is not at its end'
    : undefined;
}

/**
 * Judges the rest of the file, from the first bad place on. Returns whether a crash may have left it, the highest batch
 * number in it, and the numbers of animals and orders that its readable lines add.
 */
export function judge(rest: Buffer, offset: number, found: WholePart) {
  const { batch, length, isClosed } = found;
  let isTorn = length > 0 && !isClosed && rest.length <= MAX_BATCH_BYTES;
  let [lastBatch, pets, orders] = [batch, 0, 0];
  for (let from = 0; from < rest.length; ) {
    const feed = rest.indexOf(LINE_FEED, from);
    const bytes = rest.subarray(from, feed === -1 ? rest.length : feed);
    const record = bytes.subarray(bytes.lastIndexOf(0) + 1); // it may begin where zeros end
    if (isSealed(record)) {
      const line = summaryOf(record);
      if (line.batch !== batch + 1) isTorn = false; // batch + 1 was durable and is lost, or the line is nonsense
      lastBatch = Math.max(lastBatch, line.batch);
      pets += line.pets;
      orders += line.orders;
    }
    // A crash leaves sectors unwritten, but changes no byte. So a whole record with another byte in place of its line
    // feed is damage, unless that byte is the zero of an unwritten sector.
    const isUnwritten = bytes.at(-1) === 0 && (offset + rest.length - 1) % SECTOR_BYTES === 0;
    if (feed === -1 && !isUnwritten && isSealed(bytes.subarray(0, -1))) isTorn = false;
    from = feed === -1 ? rest.length : feed + 1;
  }
  return { isTorn: isTorn && (rest.at(-1) !== LINE_FEED || hasUnwrittenSector(rest, offset)), lastBatch, pets, orders };
}

/** The summary of a line whose checksum is right; batch 0: it belongs to none. Throws if a newer program wrote it. */
function summaryOf(record: Buffer): { batch: number; pets: number; orders: number } {
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
