/** Animals out of the store and into it as lines of JSON, part by part; asked for by `export` and `import`. */
import { petJson } from '../shop/pets.ts';
import type { Pet, PetStatus } from '../store/model.ts';
import { readLine } from './animals.ts';
import type { Context } from './context.ts';
import { CommandError, EXIT } from './exit.ts';

export const PART_MAX_ANIMALS = 1_000;
/** With one more line of an import, and at up to 3 bytes each, it fits into a line on the admin socket. */
export const PART_MAX_CHARACTERS = 131_072;

const nameOf = (first: number): string => `import ${first}`;

export async function beginImport({ store, unfinished }: Context, { count }: { count: number }) {
  const { first } = await store.write((ahead) => ({ op: 'beginImport' as const, first: ahead.nextPetId(), count }));
  unfinished.set(nameOf(first), async () => {
    await store.write(() => ({ op: 'endImport' as const, first, keep: false }));
  });
  return { first };
}

/** Lines that were found good already; `from` is the id of the first of them. */
export async function importPart(
  { store, unfinished }: Context,
  { first, from, lines }: { first: number; from: number; lines: string[] },
): Promise<void> {
  if (!unfinished.has(nameOf(first))) throw new CommandError(EXIT.failed, `no import at ${first} is under way here`);
  const pets = lines.map((line, at): Pet => {
    const animal = readLine(Buffer.from(line));
    if (typeof animal === 'string') throw new CommandError(EXIT.failed, animal);
    return { id: from + at, ...animal };
  });
  await store.write(() => ({ op: 'importPart' as const, first, pets }));
}

export async function endImport(
  { store, unfinished }: Context,
  { first, keep }: { first: number; keep: boolean },
): Promise<void> {
  await store.write(() => ({ op: 'endImport' as const, first, keep }));
  unfinished.delete(nameOf(first));
}

/** Each animal as it is at the moment it is read. */
export function exportPart({ store }: Context, { after, status }: { after: number; status?: PetStatus }) {
  const { items, more } = store.read.pets(after, PART_MAX_ANIMALS, status);
  let lines = '';
  let taken = 0;
  while (taken < items.length && lines.length < PART_MAX_CHARACTERS) lines += `${petJson(items[taken++])}\n`;
  const last = taken === 0 ? after : items[taken - 1].id;
  return { lines, last, more: more || taken < items.length, animals: store.read.counts().pets };
}
