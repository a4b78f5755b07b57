import assert from 'node:assert/strict';
import { it } from 'node:test';
import { unixSecondsBy } from '../../src/access/wall.ts';
import { SetClock } from '../../src/clock.ts';

it('tells a monotonic moment in Unix seconds, rounded up', () => {
  const clock = new SetClock(1_800_000_000_000);
  const unixSeconds = unixSecondsBy(
    () => clock.now(),
    () => clock.wall(),
  );
  assert.equal(unixSeconds(clock.now(), clock.now()), 1_800_000_000);
  assert.equal(unixSeconds(clock.now() + 1, clock.now()), 1_800_000_001);
  assert.equal(unixSeconds(clock.now() + 60_000, clock.now()), 1_800_000_060);
});

it('one moment keeps its second while the clocks wobble by up to 250 ms, and follows a jump within 250 ms', () => {
  const clock = new SetClock(1_800_000_000_000);
  const unixSeconds = unixSecondsBy(
    () => clock.now(),
    () => clock.wall(),
  );
  const moment = clock.now() + 60_000;
  for (const wobble of [250, -500, 250]) {
    clock.advance(250);
    clock.setWall(clock.wall() + wobble);
    assert.equal(unixSeconds(moment, clock.now()), 1_800_000_060);
  }
  clock.advance(250);
  clock.setWall(clock.wall() + 86_400_000);
  assert.equal(unixSeconds(moment, clock.now()), 1_800_086_460);
  clock.advance(250);
  clock.setWall(clock.wall() - 251);
  assert.equal(unixSeconds(moment - 1_000, clock.now()), 1_800_086_459);
});
