/** How much longer the reader takes than JSON.parse, from bytes to values, on a body that adds an animal. */
import { fileURLToPath } from 'node:url';
import { type JsonValue, readJson } from '../src/json/reader.ts';

const BODY = Buffer.from('{"name":"Rex","categoryId":3,"status":"available"}');
const ROUNDS = 41;
const READS_PER_ROUND = 20_000;
const WARM_UP_ROUNDS = 10;

export interface ReaderCost {
  readerNanoseconds: number;
  parseNanoseconds: number;
  ratio: number;
}

/** The two take turns, so that a busy machine troubles both alike; the medians are compared. */
export function measureReader(body: Uint8Array = BODY): ReaderCost {
  const buffer = Buffer.from(body);
  const reader: number[] = [];
  const parse: number[] = [];
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    const one = nanosecondsEach(() => readJson(buffer));
    const other = nanosecondsEach(() => JSON.parse(buffer.toString()));
    if (round < 0) continue;
    reader.push(one);
    parse.push(other);
  }
  const readerNanoseconds = median(reader);
  const parseNanoseconds = median(parse);
  return { readerNanoseconds, parseNanoseconds, ratio: readerNanoseconds / parseNanoseconds };
}

/** Kept where the optimizer cannot see that nobody wants it. */
const kept: { last: JsonValue | object } = { last: null };

function nanosecondsEach(read: () => JsonValue | object): number {
  const began = process.hrtime.bigint();
  for (let i = 0; i < READS_PER_ROUND; i++) kept.last = read();
  return Number(process.hrtime.bigint() - began) / READS_PER_ROUND;
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { readerNanoseconds, parseNanoseconds, ratio } = measureReader();
  console.log(
    `readJson ${readerNanoseconds.toFixed(0)} ns, JSON.parse ${parseNanoseconds.toFixed(0)} ns: ${ratio.toFixed(2)} times`,
  );
}
