/** `petstore export`: page after page, so that memory stays small however many animals there are. */
import { once } from 'node:events';
import type { EXPORT } from '../config.ts';
import type { Values } from './options.ts';
import { ANIMALS, Progress } from './progress.ts';
import { reach } from './reach.ts';

export async function exportAnimals({ data, status }: Values<typeof EXPORT.options>): Promise<void> {
  const operator = await reach(data);
  const progress = new Progress('exporting', ANIMALS);
  try {
    for (let after = 0, more = true; more; ) {
      const part = await operator.call('exportPart', { after, status });
      if (!process.stdout.write(part.lines)) await once(process.stdout, 'drain');
      progress.at(part.last, part.animals);
      after = part.last;
      more = part.more;
    }
  } finally {
    progress.end();
    await operator.close();
  }
}
