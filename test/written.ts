/** What the documents say of the source is written by tests: counts of lines and rows, and excerpts. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';

/** Fails if a document would say something else by now. With `WRITE_DOCS=1` it writes that. */
export function written(document: URL, text: string): void {
  if (process.env.WRITE_DOCS === '1') writeFileSync(document, text);
  assert.equal(readFileSync(document, 'utf8'), text, 'WRITE_DOCS=1 npm test -- test/small.test.ts test/docs.test.ts');
}
