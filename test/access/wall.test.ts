import assert from 'node:assert/strict';
import { it } from 'node:test';
import { steadyOffset } from '../../src/access/wall.ts';
import { SetClock } from '../clock.ts';

it('keeps a moment where it is while the clocks wobble by up to 250 ms, and follows a jump', () => {
  const clock = new SetClock(1_800_000_000_000);
  const offset = steadyOffset(() => clock.wall());
  const moment = clock.now();
  const steps = [
    [0, 0],
    [250, 0],
    [-500, 0],
    [250, 0],
    [86_400_000, 86_400_000],
    [-251, 86_399_749],
  ];
  for (const [jump, expected] of steps) {
    clock.setWall(clock.wall() + jump);
    assert.equal(moment + offset(clock.now()), 1_800_000_000_000 + expected, `after ${jump}`);
    clock.advance(1);
  }
});
