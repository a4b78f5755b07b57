/** The animals that everything is measured with: the same each time, for the service and its peers. */
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';

export interface Animal {
  id: number;
  name: string;
  categoryId: number;
  status: 'available' | 'pending' | 'sold';
}

const NAMES = ['Rex', 'Bella', 'Minka', 'Sir Hopsalot', 'Zoë', 'Nemo', 'Ada', 'Old Tom'];
const LINES_A_WRITE = 10_000;

/** `sold` is the rare status: every `rareEvery`th animal. */
export function animal(id: number, rareEvery: number): Animal {
  const status = id % rareEvery === 0 ? 'sold' : id % 3 === 0 ? 'pending' : 'available';
  return { id, name: `${NAMES[id % NAMES.length]} ${id}`, categoryId: (id % 9) + 1, status };
}

export function animals(count: number, rareEvery: number): Animal[] {
  return Array.from({ length: count }, (_, i) => animal(i + 1, rareEvery));
}

export function writeJson(file: string, value: unknown): string {
  writeFileSync(file, JSON.stringify(value));
  return file;
}

/** As `petstore import` reads them. */
export function writeLines(file: string, count: number, rareEvery: number): string {
  const handle = openSync(file, 'w');
  for (let first = 1; first <= count; first += LINES_A_WRITE) {
    const ids = Array.from({ length: Math.min(LINES_A_WRITE, count - first + 1) }, (_, i) => first + i);
    writeSync(handle, ids.map((id) => `${JSON.stringify(animal(id, rareEvery))}\n`).join(''));
  }
  closeSync(handle);
  return file;
}
