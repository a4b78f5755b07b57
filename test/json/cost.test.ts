import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { JsonError, type JsonValue, MAX_VALUES, readJson } from '../../src/json/reader.ts';

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

test('the worst texts of a body’s size are read in time that grows as they do', () => {
  for (const [name, grow] of Object.entries(WORST)) {
    const half = Buffer.from(grow(BODY_BYTES / 2));
    const whole = Buffer.from(grow(BODY_BYTES));
    let best = [Infinity, Infinity];
    for (let round = 0; round < 7; round++) {
      best = [Math.min(best[0], millisecondsFor(half)), Math.min(best[1], millisecondsFor(whole))];
    }
    // Twice the text may take four times as long (caches, collections), beside half a millisecond of noise.
    assert.ok(best[1] < 4 * best[0] + 0.5, `${name}: ${best[0]} ms for half, ${best[1]} ms for the whole`);
    assert.ok(best[1] < 100, `${name}: ${best[1]} ms`);
  }
});

function millisecondsFor(bytes: Uint8Array): number {
  const began = performance.now();
  try {
    readJson(bytes);
  } catch (error) {
    assert.ok(error instanceof JsonError);
  }
  return performance.now() - began;
}

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
