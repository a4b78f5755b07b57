/** The program as a newer version could be: its animals have one more column, `addedLater`. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TestContext } from 'node:test';
import { bundle } from '../scripts/bundle.ts';
import { temporary } from './program.ts';

/** What the present version says of what that one has written. */
export const IS_NEWER = /written by a newer version of petstore \(it has pets\.addedLater\)/;

/** The column in the model, and its value in an animal that is sent. */
const CHANGES: [RegExp, string][] = [
  [/(\bpets: table\(\{.*status: enumOf\w*\(PET_STATUSES\))(.*?revokedAt: (\w+\(moment\)))/s, '$1, addedLater: $3$2'],
  [/(\bstatus: members\.oneOf\("status", PET_STATUSES, "available"\))/, '$1, addedLater: 1'],
];

/** The words that start it. `entry`: the file that it begins with, from the root. */
export async function newerProgram(t: TestContext, entry: string): Promise<string[]> {
  const outfile = path.join(await temporary(t), 'newer.cjs');
  await bundle({ entry, outfile, commit: 'newer' });
  let text = await readFile(outfile, 'utf8');
  for (const [place, change] of CHANGES) {
    assert.match(text, place);
    text = text.replace(place, change);
  }
  await writeFile(outfile, text);
  return [process.execPath, outfile];
}
