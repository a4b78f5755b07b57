/** What our own reader of JSON costs beside JSON.parse, which cannot carry 64-bit integers and hides duplicate names. */
import type { Bench } from '../bench.ts';
import { measureReader } from '../json.ts';

export async function json(bench: Bench): Promise<void> {
  bench.progress('json: the reader beside JSON.parse');
  const { readerNanoseconds, parseNanoseconds, ratio } = measureReader();
  const value = `${readerNanoseconds.toFixed(0)} ns; JSON.parse ${parseNanoseconds.toFixed(0)} ns; ${ratio.toFixed(2)} times`;
  bench.figure('json', 'reading the body of a create', value);
}
