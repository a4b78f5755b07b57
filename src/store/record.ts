/**
 * Operations, and the parts of a whole state, as JSON: what both engines keep, so that one proof holds for both. An
 * int64 beyond 2^53 is written as a decimal string: any JSON reader reads it without loss.
 */
import { createHash, type Hash } from 'node:crypto';
import type { Int64 } from '../json/int64.ts';
import type { Counts, Once, Operation, Pet, Proof } from './model.ts';
import type { Counters } from './operations.ts';
import type { Part, State } from './state.ts';

/** Ends a state, so that nothing of it can be missing. `time`: the latest store time that any record told. */
interface End {
  op: 'proof';
  counters: Counters;
  time: number;
  proof: Proof;
}

export type Entry = Operation | Part | End;

/** Written by a newer program: it is not damaged, and this one must leave it as it is. */
export class NewerError extends Error {
  readonly what: string;

  constructor(what: string) {
    super(`written by a newer version of petstore: ${what}. Nothing was changed; use that version.`);
    this.what = what;
  }
}

/** The JSON object without its opening brace, so that its place in a file can stand before it. */
export function encode(entry: Entry): string {
  if (entry.op === 'addPet') return `"op":"addPet","pet":${petJson(entry.pet)}${onceJson(entry.once)}}`;
  // With a replacer JSON.stringify takes twice the time.
  return JSON.stringify(entry, mayHoldBigint(entry) ? (_, value) => plain(value) : undefined).slice(1);
}

/** Of each kind, what holds an int64. A kind that is missing here does not compile. */
const REVIVED: { [E in Entry as E['op']]: ((entry: E) => void) | undefined } = {
  addPet: ({ pet }) => reviveCategoryIds([pet]),
  addPets: ({ pets }) => reviveCategoryIds(pets),
  fill: ({ pets, categories }) => {
    reviveCategoryIds(pets);
    reviveIds(categories);
  },
  setCategory: ({ category }) => reviveIds([category]),
  pets: (entry) => {
    entry.categoryIds = entry.categoryIds.map(revived);
  },
  placeOrder: undefined,
  closeOrder: undefined,
  setKey: undefined,
  usage: undefined,
  advance: undefined,
  orders: undefined,
  onces: undefined,
  proof: undefined,
};

/** Takes what JSON.parse made of it, and revives each int64 in place. */
export function decode(entry: Entry): Entry {
  if (!Object.hasOwn(REVIVED, entry.op))
    throw new NewerError(`it holds "${entry.op}", which this program does not know`);
  (REVIVED[entry.op] as ((entry: Entry) => void) | undefined)?.(entry);
  return entry;
}

/** The whole state, line by line; the last one is the proof. */
export function* encodeState(state: State): Generator<string> {
  const hash = createHash('sha256');
  for (const part of state.operations()) {
    const text = encode(part);
    hash.update(text);
    yield text;
  }
  const { counters, time } = state;
  yield encode({ op: 'proof', counters, time, proof: proofOf(state.counts(), hash, counters) });
}

/** The same content has the same proof, whatever its history: `time` is no part of it. */
export function prove(state: State): Proof {
  const hash = createHash('sha256');
  for (const part of state.operations()) hash.update(encode(part));
  return proofOf(state.counts(), hash, state.counters);
}

const proofOf = (counts: Counts, hash: Hash, { nextPetId, nextOrderId, nextSlot }: Counters): Proof => ({
  ...counts,
  digest: hash.update(JSON.stringify([nextPetId, nextOrderId, nextSlot])).digest('hex'),
});

/** Takes the lines of a state back in, and holds them against the proof. */
export class StateLoader {
  readonly #state: State | undefined;
  readonly #hash = createHash('sha256');

  /** Without a state, only the digest is held against the proof. */
  constructor(state?: State) {
    this.#state = state;
  }

  /** `encoded`: the text that stands for the entry. Gives the proof, when this is it; throws when it does not hold. */
  take(entry: Entry, encoded: string | Buffer): Proof | undefined {
    if (entry.op !== 'proof') {
      this.#state?.take([entry]);
      this.#hash.update(encoded);
      return undefined;
    }
    const { counters, time, proof: told } = entry;
    const found = proofOf(this.#state?.counts() ?? told, this.#hash, counters);
    for (const name of Object.keys(told) as (keyof Proof)[]) {
      if (found[name] !== told[name]) throw new Error(`${name}: ${told[name]} is told, ${found[name]} found`);
    }
    if (this.#state) this.#state.time = time;
    Object.assign(this.#state?.counters ?? {}, counters);
    return found;
  }
}

function petJson({ id, name, categoryId, status }: Pet): string {
  const category = typeof categoryId === 'bigint' ? `"${categoryId}"` : categoryId;
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${category},"status":"${status}"}`;
}

function onceJson(once: Once | undefined): string {
  return once === undefined ? '' : `,"once":${JSON.stringify(once)}`;
}

function mayHoldBigint(entry: Entry): boolean {
  const { op } = entry;
  if (op === 'addPets') return entry.pets.some(({ categoryId }) => typeof categoryId === 'bigint');
  if (op === 'pets') return entry.categoryIds.some((id) => typeof id === 'bigint');
  return op === 'setCategory' || op === 'fill';
}

const plain = (value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value);

const revived = (value: Int64 | string): Int64 => (typeof value === 'string' ? BigInt(value) : value);

function reviveCategoryIds(pets: { categoryId: Int64 }[]): void {
  for (const pet of pets) pet.categoryId = revived(pet.categoryId);
}

function reviveIds(categories: { id: Int64 }[]): void {
  for (const category of categories) category.id = revived(category.id);
}
