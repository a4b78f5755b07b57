/** `petstore export`. */
import { petJson } from '../shop/pets.ts';
import { PET_STATUSES } from '../store/model.ts';
import { command } from './command.ts';
import { oneOf, optional, place } from './options.ts';

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
