/** The animals that everything is measured with: the same each time, for the service and its peers. */
import { writeFileSync } from 'node:fs';

export interface Animal {
  id: number;
  name: string;
  categoryId: number;
  status: 'available' | 'pending' | 'sold';
}

const NAMES = ['Rex', 'Bella', 'Minka', 'Sir Hopsalot', 'Zoë', 'Nemo', 'Ada', 'Old Tom'];

/** `sold` is the rare status: every `rareEvery`th animal. */
export function animal(id: number, rareEvery: number): Animal {
  const status = id % rareEvery === 0 ? 'sold' : id % 3 === 0 ? 'pending' : 'available';
  return { id, name: `${NAMES[id % NAMES.length]} ${id}`, categoryId: (id % 9) + 1, status };
}

export function animals(count: number, rareEvery: number): Animal[] {
  return Array.from({ length: count }, (_, i) => animal(i + 1, rareEvery));
}

/** As `petstore import` reads them. */
export function writeLines(file: string, count: number, rareEvery: number): string {
  writeFileSync(
    file,
    animals(count, rareEvery)
      .map((one) => `${JSON.stringify(one)}\n`)
      .join(''),
  );
  return file;
}
