/** The console's form shows those fields of a fault that the lab takes with its kind: two tables, held together here. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { readJson } from '../../src/json/reader.ts';
import { readFault } from '../../src/lab/faults.ts';

const page = readFileSync(new URL('../../src/web/page/lab.js', import.meta.url), 'utf8');
const tableIn = (name: string) => new Function(`return ${new RegExp(`const ${name} = ([{[][^;]*);`).exec(page)![1]}`)();
const KINDS: Record<string, string[]> = tableIn('KINDS');
const OF_SOME_KINDS: string[] = tableIn('OF_SOME_KINDS');

const EXAMPLES: Record<string, string | number> = { ms: 5, seconds: 2, as: 'date', status: 503 };

/** Why the lab refuses a fault with these members; undefined where it takes it. */
function refusalOf(members: object): string | undefined {
  try {
    readFault(readJson(Buffer.from(JSON.stringify(members))), []);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

test('the form offers every kind of fault, each with the fields that it takes and no others', () => {
  assert.deepEqual(Object.keys(EXAMPLES).sort(), OF_SOME_KINDS.toSorted());
  const kinds = Object.keys(KINDS);
  const told: string[] = refusalOf({ kind: '?' })?.match(/\w+/g) ?? [];
  for (const kind of kinds) assert.ok(told.includes(kind), kind);
  assert.deepEqual(
    told.slice(told.indexOf(kinds[0]), told.indexOf(kinds.at(-1)!) + 1).filter((word) => word !== 'or'),
    kinds,
  );
  for (const [kind, own] of Object.entries(KINDS)) {
    for (const [name, example] of Object.entries(EXAMPLES)) {
      const why = refusalOf({ kind, ...(kind === 'status' && { status: 503 }), [name]: example });
      assert.equal(why === undefined, own.includes(name), `${kind} with ${name}: ${why}`);
    }
  }
});
