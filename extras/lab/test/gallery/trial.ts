/** Tries an exhibit of the gallery: a service of its own with the drill, in real time, over real HTTP. */
import assert, { AssertionError } from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { RunningClock } from '../../../../test/clock.ts';
import { startLab } from '../service.ts';
import { GalleryClient } from './client.ts';
import { errand } from './errands.ts';
import type { Exhibit } from './gallery.ts';

const PETS = Array.from({ length: 30 }, (_, n) => {
  return { name: `Bello ${n}`, categoryId: 1, status: n === 0 ? ('sold' as const) : ('available' as const) };
});

/**
 * Where the process, which holds service and client, gets no processor time for so long, a request that was under way
 * when a refusal came may be read a second later, and look early. Such a trial shows nothing.
 */
const STALL_MS = 200;
const MAX_TRIALS = 3;

export function tryAll(title: string, exhibits: readonly Exhibit[]): void {
  describe(title, { concurrency: 6 }, () => {
    for (const one of exhibits) it(`${one.name}: ${one.grade}`, (t) => tryOut(t, one));
  });
}

async function tryOut(t: TestContext, exhibit: Exhibit): Promise<void> {
  const stalls = monitorEventLoopDelay();
  for (let trial = 1; ; trial++) {
    stalls.reset();
    stalls.enable();
    try {
      return await tryOnce(t, exhibit);
    } catch (error) {
      const longestMs = Math.round(stalls.max / 1e6);
      if (!(error instanceof AssertionError) || longestMs < STALL_MS) throw error;
      const why = `the machine is too slow to tell: this process waited ${longestMs} ms for the processor`;
      if (trial === MAX_TRIALS) return t.skip(why);
      t.diagnostic(why);
    } finally {
      stalls.disable();
    }
  }
}

async function tryOnce(t: TestContext, exhibit: Exhibit): Promise<void> {
  const { manner, errand: does = errand, grade, fails = [], warns = [], unseen = [], maybe = [] } = exhibit;
  const options = { clock: new RunningClock(), pets: PETS, perMinute: 200, perDay: 5_000, banAfter: 100 };
  const { port, key, lab, must } = await startLab(t, options);
  await must('POST /lab/drill');
  const origin = `http://127.0.0.1:${port}`;
  const client = new GalleryClient(origin, key, manner);
  await does(client, { origin, key });
  client.close();
  let graded = lab.grade(1);
  for (; graded.openMs > 0 && graded.openMs < 30_000; graded = lab.grade(1)) await delay(graded.openMs);

  const idsOf = (verdict: string) => graded.checks.filter((one) => one.verdict === verdict).map(({ id }) => id);
  const without = (ids: string[], ...ignored: string[]) => ids.filter((id) => !ignored.includes(id));
  const found = {
    grade: graded.grade,
    fails: idsOf('fail'),
    warns: without(idsOf('warn'), ...maybe),
    unseen: without(idsOf('unseen'), 'deprecated', ...maybe),
  };
  const reasons = graded.checks.map(({ id, verdict, why }) => `${verdict} ${id}: ${why}`);
  const message = [`${exhibit.name}, ${graded.score} of 100`, ...reasons].join('\n');
  assert.deepEqual(found, { grade, fails, warns, unseen }, message);
}
