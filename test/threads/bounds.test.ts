/** Of what is bounded in all, each thread has its part. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Connections } from '../../src/http/connections.ts';

const of = (threads?: number) =>
  new Connections(createServer(), { begin() {}, now: () => 0, maxConnections: 10, threads });

test('four threads have a quarter each of what may be unanswered, unsent, and under way as bodies', () => {
  const [alone, one] = [of(), of(4)];
  const both = [alone, one];
  for (const thread of both) thread.unanswered = 5_001;
  assert.deepEqual(
    both.map(({ areFull }) => areFull),
    [false, true],
  );
  for (const thread of both) Object.assign(thread, { unanswered: 0, unsent: 16 * 1024 * 1024 + 1 });
  assert.deepEqual(
    both.map(({ areFull }) => areFull),
    [false, true],
  );
  for (const thread of both) Object.assign(thread, { unanswered: 5_000, unsent: 16 * 1024 * 1024 });
  assert.deepEqual(
    both.map(({ areFull }) => areFull),
    [false, false],
  );
  const givenUp = both.map((thread) => {
    let count = 0;
    for (let i = 0; i < 20; i++) {
      const giveUp = () => {
        count++;
        thread.letGo(body);
      };
      const body = { giveUp };
      thread.hold(body, 1024 * 1024);
    }
    return count;
  });
  assert.deepEqual(givenUp, [0, 4]);
});
