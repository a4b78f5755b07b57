/** `petstore export` and `grade`. */
import { writeFile } from 'node:fs/promises';
import { petJson } from '../shop/pets.ts';
import { PET_STATUSES } from '../store/model.ts';
import { command } from './command.ts';
import { keyOf } from './key-details.ts';
import { id } from './keys.ts';
import { json, oneOf, optional, path, place } from './options.ts';
import { facts, print, table } from './output.ts';

const PAGE_ANIMALS = 500;

/** Page after page, so that memory stays small; each animal as it is at the moment it is read. */
export const EXPORT = command({
  name: 'export',
  does: 'print all animals as JSON lines',
  options: { status: optional(oneOf(PET_STATUSES), 'STATUS', 'only animals with this status'), ...place },
  reads: true,
  call: async ({ engine }, { status }, { tell }): Promise<void> => {
    for (let after = 0, more = true; more; ) {
      const page = engine.store.read.pets.page(after, PAGE_ANIMALS, status);
      if (page.items.length > 0) await tell(page.items.map(petJson).join('\n'));
      after = page.items.at(-1)?.id ?? after;
      more = page.more;
    }
  },
});

export const GRADE = command({
  name: 'grade',
  does: 'tell how the client of a key behaved; exit 1 without a grade, or with a lower one',
  more: 'Asks the server that runs with --lab on --data. One with --store is asked by GET /lab/grade, with the key.',
  options: {
    id,
    atLeast: optional(oneOf(['A', 'B', 'C', 'D']), 'GRADE', 'lowest grade that is good enough'),
    junit: optional(path, 'FILE', 'write the checks there as JUnit XML'),
    ...place,
    json,
  },
  reads: true,
  call: ({ engine, grade }, { id, atLeast }) => {
    if (grade !== undefined) return grade(keyOf(engine.store.read, id).id, atLeast);
    const who = 'only a server with --lab grades clients, and none runs on a directory here';
    throw new Error(`${who}; of one with --store ask GET /lab/grade`);
  },
  run: async ({ junit, json, atLeast }, ask) => {
    const { isGoodEnough, junit: xml, checks, ...graded } = await ask();
    if (junit !== undefined) await writeFile(junit, xml);
    await print(json ? JSON.stringify({ ...graded, checks }, null, 2) : `${facts(graded)}\n\n${table(checks)}`);
    const why = graded.grade === null ? 'there is no grade yet: too little was seen' : `the grade is not ${atLeast}`;
    if (!isGoodEnough) throw new Error(why);
  },
});
