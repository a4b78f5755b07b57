/** Animals out of the store and into it, part by part; asked for by `export` and `import`. */
import * as v from 'valibot';
import { parseInt64 } from '../json/int64.ts';
import { petJson } from '../shop/pets.ts';
import { PET_STATUSES, type Pet } from '../store/model.ts';
import { name } from './animals.ts';
import type { Context } from './context.ts';
import { CommandError, EXIT } from './exit.ts';

export const PART_MAX_ANIMALS = 1_000;
/** In the worst case 6 bytes each on the admin socket, whose lines have at most 1 MiB. */
export const PART_MAX_CHARACTERS = 131_072;

const id = v.pipe(v.number(), v.safeInteger(), v.minValue(1));

/** An int64 goes over the admin socket as a text, which JSON carries exactly. */
const animalText = v.strictObject({ name, categoryId: v.string(), status: v.picklist(PET_STATUSES) });
export type AnimalText = v.InferOutput<typeof animalText>;

export const beginning = v.object({ count: id });
export const part = v.object({
  first: id,
  from: id,
  animals: v.pipe(v.array(animalText), v.minLength(1), v.maxLength(PART_MAX_ANIMALS)),
});
export const ending = v.object({ first: id, keep: v.boolean() });
export const exporting = v.object({
  after: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  status: v.optional(v.picklist(PET_STATUSES)),
});

const nameOf = (first: number): string => `import ${first}`;

export async function beginImport(
  { store, unfinished }: Context,
  { count }: v.InferOutput<typeof beginning>,
): Promise<{ first: number }> {
  const { first } = await store.write((ahead) => ({ op: 'beginImport' as const, first: ahead.nextPetId(), count }));
  const undo = async () => {
    await store.write(() => ({ op: 'endImport' as const, first, keep: false }));
  };
  unfinished.set(nameOf(first), undo);
  return { first };
}

export async function importPart(
  { store, unfinished }: Context,
  { first, from, animals }: v.InferOutput<typeof part>,
): Promise<void> {
  if (!unfinished.has(nameOf(first))) throw new CommandError(EXIT.failed, `no import at ${first} is under way here`);
  const pets = animals.map((animal, at): Pet => {
    const categoryId = parseInt64(animal.categoryId);
    if (categoryId === undefined) throw new CommandError(EXIT.failed, 'categoryId is no integer of 64 bits');
    return { id: from + at, name: animal.name, categoryId, status: animal.status };
  });
  await store.write(() => ({ op: 'importPart' as const, first, pets }));
}

export async function endImport(
  { store, unfinished }: Context,
  { first, keep }: v.InferOutput<typeof ending>,
): Promise<void> {
  await store.write(() => ({ op: 'endImport' as const, first, keep }));
  unfinished.delete(nameOf(first));
}

/** Each animal as it is at the moment it is read, as a line of JSON. */
export function exportPart(
  { store }: Context,
  { after, status }: v.InferOutput<typeof exporting>,
): { lines: string; last: number; more: boolean; animals: number } {
  const { items, more } = store.read.pets(after, PART_MAX_ANIMALS, status);
  let lines = '';
  let taken = 0;
  while (taken < items.length && lines.length < PART_MAX_CHARACTERS) lines += `${petJson(items[taken++])}\n`;
  const last = taken === 0 ? after : items[taken - 1].id;
  return { lines, last, more: more || taken < items.length, animals: store.read.counts().pets };
}
