/**
 * Changes as JSON. The logs of both engines hold this text, so one proof serves both. An int64 beyond 2^53 is a decimal
 * string: any JSON reader reads it without loss.
 */
import { createHash, type Hash } from 'node:crypto';
import type { Int64 } from '../json/int64.ts';
import { excerpt } from '../quoting.ts';
import { isChange } from './changes.ts';
import type { Change, Counters, IdempotencyKey, Pet, Proof, Whole } from './model.ts';
import { mustFit } from './shape.ts';
import type { State } from './state.ts';

/** The last record of a whole state: it shows that no part is missing. `time`: the latest store time in any record. */
interface End {
  op: 'proof';
  counters: Counters;
  time: number;
  proof: Proof;
}

export type Entry = Change | End;

/** The data was written by another version, most often a newer one: it is not damaged, and stays untouched. */
export class VersionError extends Error {
  readonly what: string;
  readonly isOlder: boolean;

  constructor(what: string, isOlder = false) {
    const age = isOlder ? 'an older' : 'a newer';
    super(`written by ${age} version of petstore: ${what}. Nothing was changed; use that version.`);
    [this.what, this.isOlder] = [what, isOlder];
  }
}

/** The JSON object without its opening brace: in a file, the checksum and the place of the line come before it. */
export function encode(entry: Entry): string {
  if (entry.op === 'addPet') return addPetJson(entry.pet, entry.once, entry.by);
  try {
    return JSON.stringify(entry).slice(1);
  } catch {
    // The entry holds a bigint. A replacer takes twice the time, so it is not used for all.
    return JSON.stringify(entry, (_, value) => (typeof value === 'bigint' ? `${value}` : value)).slice(1);
  }
}

/** Made by a template, in a third of the time: most changes are of this kind. */
function addPetJson(
  whole: Whole<Pet, 'id' | 'name' | 'categoryId' | 'status'>,
  once?: IdempotencyKey,
  by?: string,
): string {
  const { id, name, categoryId, status } = whole;
  const category = typeof categoryId === 'bigint' ? `"${categoryId}"` : categoryId;
  const pet = `"id":${id},"name":${JSON.stringify(name)},"categoryId":${category},"status":"${status}"`;
  const who = by === undefined ? '' : `,"by":"${by}"`;
  return `"op":"addPet","pet":{${pet}}${once ? `,"once":${JSON.stringify(once)}` : ''}${who}}`;
}

/** Takes a line from JSON.parse. Throws if it does not have the shape of a change; turns texts into int64, in place. */
export function decode(line: object): Entry {
  const { op } = line as { op?: unknown };
  if (typeof op !== 'string') throw new Error('it holds no change');
  if (!isChange(op) && op !== 'proof') {
    throw new VersionError(`it holds ${excerpt(op)}, which this program does not know`);
  }
  if (op === 'setKey') nameAdvance((line as { key?: OldKey }).key);
  mustFit(op as Entry['op'], line);
  const entry = line as Entry;
  if (entry.op === 'addPet') entry.pet.categoryId = revived(entry.pet.categoryId);
  if (entry.op === 'setCategory') entry.category.id = revived(entry.category.id);
  if (entry.op === 'fill') for (const category of entry.categories) category.id = revived(category.id);
  const columns = entry.op === 'fill' ? entry.pets : entry.op === 'pets' ? entry : undefined;
  if (columns?.categoryIds.some(isText)) columns.categoryIds = columns.categoryIds.map(revived);
  return entry;
}

type OldKey = { ahead?: number; clockAdvanceMs?: number } | null;

/** Before 1.0.0 a lab key's clock was kept under another name. */
function nameAdvance(key: OldKey | undefined): void {
  if (typeof key?.ahead !== 'number') return;
  key.clockAdvanceMs = key.ahead;
  delete key.ahead;
}

const isText = (value: unknown) => typeof value === 'string';
const revived = (value: Int64 | string): Int64 => (typeof value === 'string' ? BigInt(value) : value);

/** The whole state, line by line; the last one is the proof. */
export function* encodeState(state: State): Generator<string> {
  const hash = createHash('sha256');
  for (const change of state.changes()) {
    const text = encode(change);
    hash.update(text);
    yield text;
  }
  const { counters, time } = state;
  yield encode({ op: 'proof', counters, time, proof: { ...state.counts(), digest: digestOf(hash, counters) } });
}

/** The same content has the same proof, whatever its history: `time` is no part of it. */
export function prove(state: State): Proof {
  let last = '';
  for (const text of encodeState(state)) last = text;
  return JSON.parse(`{${last}`).proof;
}

/**
 * Returns a function that takes the lines of a whole state one by one. At the last line, the proof, it throws if the
 * lines before do not match. `encoded`: the text of the entry. Without a state, only the digest is compared.
 */
export function loaderOf(state: State | undefined): (entry: Entry, encoded: string | Buffer) => void {
  const hash = createHash('sha256');
  return (entry, encoded) => {
    if (entry.op !== 'proof') {
      state?.apply([entry]);
      hash.update(encoded);
      return;
    }
    const { counters, time, proof: expected } = entry;
    const found: Proof = { ...(state?.counts() ?? expected), digest: digestOf(hash, counters) };
    for (const name of Object.keys(expected) as (keyof Proof)[]) {
      if (found[name] !== expected[name]) throw new Error(`${name}: expected ${expected[name]}, found ${found[name]}`);
    }
    if (state) Object.assign(state, { counters, time });
  };
}

function digestOf(hash: Hash, { nextPetId, nextOrderId, nextSlot }: Counters): string {
  return hash.update(JSON.stringify([nextPetId, nextOrderId, nextSlot])).digest('hex');
}
