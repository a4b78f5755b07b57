import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type JsonValue, MAX_VALUES, readJson } from '../../src/json/reader.ts';
import { JsonError } from '../../src/json/text.ts';

const BODY_BYTES = 65_536;

/** The texts that cost most, each grown to a size. */
const WORST: Record<string, (bytes: number) => string> = {
  'integer-like names': (bytes) => membersOf(bytes, (i) => String(i)),
  'names whose low bits are equal': (bytes) => membersOf(bytes, (i) => String(i * 4_096)),
  'names that differ at their end': (bytes) => membersOf(bytes, (i) => 'a'.repeat(40) + i),
  escapes: (bytes) => `"${'\\n'.repeat(bytes / 2)}"`,
  'unicode escapes': (bytes) => `"${'\\ud83d\\ude00'.repeat(bytes / 12)}"`,
  digits: (bytes) => '9'.repeat(bytes),
  'zeros before a digit': (bytes) => `0.${'0'.repeat(bytes)}1`,
  'zeros behind a digit': (bytes) => `1${'0'.repeat(bytes)}`,
  'zeros between digits': (bytes) => `1${'0'.repeat(bytes)}1e1`,
  'many long numbers': (bytes) =>
    `[${Array(Math.floor(bytes / 21))
      .fill('-9223372036854775808')
      .join(',')}]`,
  'white space': (bytes) => `${' '.repeat(bytes)}1`,
  'a fault at the end of many lines': (bytes) => `${'\n'.repeat(bytes)}x`,
  'a wrong byte behind many U+FFFD': (bytes) => `"${'\ufffd'.repeat(bytes / 3)}`,
};

function membersOf(bytes: number, name: (i: number) => string): string {
  const members: string[] = [];
  for (let i = 1, size = 0; size < bytes && i < MAX_VALUES; i++) {
    members.push(`"${name(i)}":0`);
    size += members[members.length - 1].length + 1;
  }
  return `{${members.join(',')}}`;
}

test('a text costs by the byte what a short one costs, whatever stands in it', () => {
  for (const [name, grow] of Object.entries(WORST)) {
    const short = Buffer.from(grow(BODY_BYTES / 64));
    const long = Buffer.from(grow(BODY_BYTES));
    let [many, one] = [Infinity, Infinity];
    for (let round = 0; round < 5; round++) {
      many = Math.min(many, cpuMicroseconds(short, 64));
      one = Math.min(one, cpuMicroseconds(long, 1));
    }
    // Time that grew with the square of the length would be 64 times as much; a busy machine takes no CPU time of ours.
    assert.ok(one < 12 * many + 2_000, `${name}: ${one} µs for one of 64 KiB, ${many} µs for 64 of 1 KiB`);
  }
});

function cpuMicroseconds(bytes: Uint8Array, times: number): number {
  const before = process.cpuUsage();
  for (let time = 0; time < times; time++) {
    try {
      readJson(bytes);
    } catch (error) {
      assert.ok(error instanceof JsonError);
    }
  }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

test('a reply of a megabyte that is all escapes is read', () => {
  assert.equal((readJson(Buffer.from(`"${'\\n'.repeat(524_286)}"`)) as string).length, 524_286);
});

test('a name that is kept does not keep the body it came in', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const kept: JsonValue[] = [];
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 200; i++) {
    const body = `{"name":"a name of some length ${i}","escaped":"\\u0041 name of some length"}`.padEnd(BODY_BYTES);
    const members = readJson(Buffer.from(body)) as Map<string, JsonValue>;
    kept.push(members.get('name')!, members.get('escaped')!);
  }
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  assert.equal(kept.length, 400);
  assert.ok(grown < (200 * BODY_BYTES) / 4, `${grown} bytes for 400 short strings`);
});
