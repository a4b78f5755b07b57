/** Pages that are cut out of text. What they hold is in the contract; this is what they cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RowTexts } from '../../src/shop/lists.ts';
import { petJson } from '../../src/shop/pets.ts';
import { Tables } from '../../src/store/tables.ts';

test('a list makes no text of blocks whose rows were all removed', () => {
  const { pets } = new Tables();
  for (let id = 1; id <= 10_000; id++) {
    pets.put({ id, name: 'Rex', categoryId: 1, status: 'available' });
    if (id > 1 && id < 10_000) pets.delete(id);
  }
  let reads = 0;
  const get = pets.get.bind(pets);
  pets.get = (id) => {
    reads++;
    return get(id);
  };
  const { text } = new RowTexts(pets, petJson).page({ after: undefined, limit: 2, status: undefined });
  assert.equal(JSON.parse(`[${text}]`).at(-1).id, 10_000);
  assert.ok(reads < 200, `${reads} ids were looked up`);
});
