/** For bytes.test.ts, which names the flags: by how many bytes of heap what is kept has grown, beside the estimate. */
import { type Change, ORDER_STATUSES } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';

const ROWS = 40_000;
const AT = Date.UTC(2026, 0, 1);
/** A text of its own, in one piece, as a reader makes it. */
const own = (text: string) => Buffer.from(text).toString();
const wide = (i: number) => own(`${'\u{1f63a}'.repeat(247)}${i}`.padEnd(502, 'x'));
const pet = (i: number, name: string, categoryId: number | bigint = 1) => {
  return { id: i + 1, name, categoryId, status: 'available' as const };
};
const about = { plan: 'pro' as const, perMinute: 300, perDay: 10_000, environment: 'production' as const };

const CASES: Record<string, (i: number) => Change> = {
  'animals with short names': (i) => ({ op: 'addPet', pet: pet(i, own(`Rex ${i}`)) }),
  'animals with long names': (i) => ({ op: 'addPet', pet: pet(i, own(`${i}`.padStart(255, 'x'))) }),
  'animals with names of 255 four-byte characters': (i) => ({ op: 'addPet', pet: pet(i, wide(i)) }),
  'animals of far categories': (i) => ({ op: 'addPet', pet: pet(i, own(`Rex ${i}`), 2n ** 60n + BigInt(i)) }),
  'animals of large categories': (i) => ({ op: 'addPet', pet: pet(i, own(`Rex ${i}`), 2 ** 40 + i) }),
  categories: (i) => ({ op: 'setCategory', category: { id: i, name: own(`Dogs ${i}`) } }),
  'categories with names of 255 four-byte characters': (i) => ({
    op: 'setCategory',
    category: { id: i, name: wide(i) },
  }),
  orders: (i) => ({
    op: 'placeOrder',
    order: { id: i + 1, petId: i + 1, status: ORDER_STATUSES[0], placedAt: AT + i },
  }),
  'idempotency records': (i) => ({
    op: 'onces',
    onces: [[own(`addPet\nk1\n${i}`), { id: i, status: 'available', at: AT + i }]],
  }),
  'idempotency records with long keys': (i) => ({
    op: 'onces',
    onces: [[own(`addPet\nk1\n${`${i}`.padStart(255, 'x')}`), { id: i, status: 'available', at: AT + i }]],
  }),
  keys: (i) => {
    const secrets = [{ digest: own(`${i}`.padStart(64, 'a')) }];
    return {
      op: 'setKey',
      key: { id: own(`k${i + 1}`), slot: i, name: own(`Name ${i}`), createdAt: AT + i, ...about, secrets },
    };
  },
};

function heapUsed(): number {
  for (let i = 0; i < 3; i++) (globalThis as unknown as { gc(): void }).gc();
  return process.memoryUsage().heapUsed;
}

function addAnimals(state: State): void {
  const columns = {
    names: Array(ROWS).fill('x'),
    categoryIds: Array(ROWS).fill(1),
    statuses: Array(ROWS).fill('available'),
  };
  state.apply([{ op: 'pets', first: 1, ...columns }]);
}

function grown(name: string, change: (i: number) => Change) {
  const state = new State();
  if (name === 'orders') addAnimals(state);
  const [heap, bytes] = [heapUsed(), state.bytes.total];
  for (let i = 0; i < ROWS; i++) state.apply([change(i)]);
  const measured = heapUsed() - heap;
  return { measured: measured / ROWS, estimated: (state.bytes.total - bytes) / ROWS };
}

const found = Object.entries(CASES).map(([name, change]) => {
  grown(name, change); // what code needs once lies on the heap after it
  const { measured, estimated } = grown(name, change);
  return [name, measured, estimated];
});
process.stdout.write(JSON.stringify(found));
