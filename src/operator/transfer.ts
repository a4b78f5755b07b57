/** Animals out of the store and into it as lines of JSON, part by part; asked for by `export` and `import`. */
import { randomUUID } from 'node:crypto';
import { petJson } from '../shop/pets.ts';
import type { PetStatus } from '../store/model.ts';
import { readLine } from './animals.ts';
import type { Context } from './context.ts';
import { CommandError, EXIT } from './exit.ts';

export const PART_MAX_ANIMALS = 1_000;
/** With one more line of an import, and at up to 3 bytes each, it fits into a line on the admin socket. */
export const PART_MAX_CHARACTERS = 131_072;

/** Gives it a name that no other has. */
export function beginImport({ store, unfinished }: Context): { import: string } {
  const name = randomUUID();
  unfinished.set(name, async () => store.forgetImport(name));
  return { import: name };
}

/** Lines that were found good already. */
export async function importPart(
  { store, unfinished }: Context,
  { import: name, lines }: { import: string; lines: string[] },
): Promise<void> {
  if (!unfinished.has(name)) throw new CommandError(EXIT.failed, 'no import of that name is under way here');
  const pets = lines.map((line) => {
    const animal = readLine(Buffer.from(line));
    if (typeof animal === 'string') throw new CommandError(EXIT.failed, animal);
    return animal;
  });
  await store.write(() => ({ op: 'importPart', import: name, pets }));
}

export async function endImport(
  { store, unfinished }: Context,
  { import: name, count }: { import: string; count: number },
): Promise<{ first: number }> {
  const { first } = await store.write((ahead) => {
    return { op: 'endImport' as const, import: name, first: ahead.nextPetId(), count };
  });
  unfinished.delete(name);
  return { first };
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
