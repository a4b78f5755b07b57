/** Secrets that were rotated out, where the machine's clock is wrong at a start. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Callers, isRefusal } from '../../src/access/callers.ts';
import { read } from '../../src/operator/arguments.ts';
import type { Context } from '../../src/operator/context.ts';
import { openFileEngine } from '../../src/operator/file-engine.ts';
import { KEY_COMMANDS } from '../../src/operator/keys.ts';
import { SetClock } from '../clock.ts';
import { temporary } from '../program.ts';

const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;
const log = { info() {}, warn() {}, error() {} };

/** What `work` comes to, on the store as it is opened with the clock at `wall`. */
async function withClock<R>(data: string, wall: number, work: (context: Context, clock: SetClock) => Promise<R>) {
  const clock = new SetClock(wall);
  const engine = await openFileEngine(data, { clock, log });
  return work({ engine, clock, environment: 'production' }, clock).finally(() => engine.close());
}

/** What a command does where the store is. */
function call(context: Context, name: string, ...words: string[]): Promise<Record<string, unknown>> {
  const io = { input: (async function* () {})(), tell: async () => {} };
  const command = KEY_COMMANDS.find((one) => one.name === name)!;
  return command.call!(context, read(command, words, {}), io) as Promise<Record<string, unknown>>;
}

const create = (context: Context) => call(context, 'keys create', '--plan', 'free');
const rotate = (context: Context) => call(context, 'keys rotate', 'k1', '--grace', '1h');

async function started(t: TestContext) {
  const now = Date.UTC(2026, 0, 1);
  return { data: await temporary(t), now };
}

test('a clock that is set back at a start gives an old secret no longer grace, also where no request ever came', async (t) => {
  const { data, now } = await started(t);
  const secret = await withClock(data, now, async (context) => {
    const { key } = await create(context);
    await rotate(context);
    return key;
  });
  await withClock(data, now - YEAR, async ({ engine }, clock) => {
    const isTaken = () => !isRefusal(new Callers(engine.store, 'production').identify(`Bearer ${secret}`));
    assert.equal(isTaken(), true);
    clock.advance(HOUR);
    assert.equal(isTaken(), false);
  });
});

test('the end of a grace is told as the machine counts, also where the store counts otherwise', async (t) => {
  const { data, now } = await started(t);
  await withClock(data, now + YEAR, create);
  await withClock(data, now, async (context) => {
    const { oldSecretEndsAt } = await rotate(context);
    assert.equal(oldSecretEndsAt, new Date(now + HOUR).toISOString());
    assert.deepEqual((await call(context, 'keys show', 'k1')).graceEndsAt, [oldSecretEndsAt]);
  });
});
