/** A command's way to the store: through the running server if there is one, else by opening it here. */
import { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import * as v from 'valibot';
import { SlotLimiter } from '../access/limiter.ts';
import { systemClock as clock } from '../clock.ts';
import { type ArgsOf, type CallName, type ResultOf, runCall, undoUnfinished } from './calls.ts';
import { type Context, restoreUsage } from './context.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import { mustHoldStore, openStore } from './opening.ts';
import { withProgress } from './progress.ts';
import { connectTo, lineOf, linesFrom, unanswered } from './socket.ts';

/** A server that has our connection but does not greet is stopped or starting. */
const GREETING_MAX_WAIT_MS = 3_000;
/** Another command holds the store for a moment only. */
const IN_USE_MAX_WAIT_MS = 3_000;
const IN_USE_RETRY_MS = 100;
/** How often a command that has nothing to say speaks in the time for which it may be silent. */
const SIGNS_PER_SILENCE = 6;

export interface Operator {
  call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>>;
  close(): Promise<void>;
}

/** `mayMake`: where there is no store, begin one. */
export async function reach<R>(dir: string, work: (to: Operator) => Promise<R>, mayMake = false): Promise<R> {
  const operator = await serverOr(dir, () => {
    if (!mayMake) mustHoldStore(dir);
    return openHere(dir);
  });
  return work(operator).finally(() => operator.close());
}

export function ask<N extends CallName>(dir: string, name: N, args: ArgsOf<N>, mayMake = false): Promise<ResultOf<N>> {
  return reach(dir, (to) => to.call(name, args), mayMake);
}

/** The server that runs there; without one, what `here` gives, tried again while another command is at work. */
export async function serverOr<R>(dir: string, here: () => Promise<R>): Promise<Operator | R> {
  const found = await triedWhileInUse(async () => (await connectTo(dir)) ?? here());
  return found instanceof Socket ? greeted(found, dir) : found;
}

/** `isInVain`: whoever has the store does not have it for a moment only. */
export async function triedWhileInUse<R>(work: () => Promise<R>, isInVain = async () => false): Promise<R> {
  const end = performance.now() + IN_USE_MAX_WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const failure = asCommandError(error);
      if (failure.exit !== EXIT.inUse || performance.now() > end || (await isInVain())) throw failure;
      await wait(IN_USE_RETRY_MS);
    }
  }
}

async function openHere(dir: string): Promise<Operator> {
  const onNotice = (text: string) => void process.stderr.write(`petstore: ${text}\n`);
  const store = await withProgress(`reading ${dir}`, (onProgress) => openStore(dir, { onProgress, onNotice }));
  const limiter = new SlotLimiter({ clock });
  restoreUsage(limiter, store.read);
  const context: Context = { store, dir, limiter, clock, environment: 'production', unfinished: new Map() };
  return {
    call: ((name, args) => runCall(context, name, args)) as Operator['call'],
    close: async () => {
      await undoUnfinished(context);
      await store.close();
    },
  };
}

const refusal = v.object({ error: v.object({ exit: v.number(), message: v.string() }) });
const greeting = v.object({ silenceMaxMs: v.number() });
const answer = v.object({ result: v.optional(v.unknown()) });

async function greeted(socket: Socket, dir: string): Promise<Operator> {
  const lines = linesFrom(socket);
  const hear = async <T>(form: v.GenericSchema<unknown, T>): Promise<T> => {
    const line = await lines.next().catch(() => undefined);
    if (line?.done !== false) throw new CommandError(EXIT.failed, 'the server ended before it answered');
    const said: unknown = JSON.parse(line.value);
    if (!v.is(refusal, said)) return v.parse(form, said);
    throw new CommandError(said.error.exit, said.error.message);
  };
  const tooLate = async () => {
    await wait(GREETING_MAX_WAIT_MS, undefined, { ref: false });
    throw unanswered(dir);
  };
  const { silenceMaxMs } = await Promise.race([hear(greeting), tooLate()]).catch((error) => {
    socket.destroy();
    throw error;
  });
  return speaking(socket, async () => (await hear(answer)).result, silenceMaxMs);
}

/** A command may have no call to make for long, a backup while it copies, and lets the server know that it lives. */
function speaking(socket: Socket, hear: () => Promise<unknown>, silenceMaxMs: number): Operator {
  let awaited = 0;
  let livedAt = performance.now();
  let stoodStill = false;
  const live = () => {
    const now = performance.now();
    stoodStill ||= now - livedAt > silenceMaxMs;
    livedAt = now;
  };
  const call = async (call: CallName, args: unknown) => {
    live();
    awaited++;
    socket.write(lineOf({ call, args }));
    return hear()
      .catch((error) => {
        throw stoodStill && socket.destroyed ? hungUp(silenceMaxMs) : error;
      })
      .finally(() => awaited--);
  };
  const signs = setInterval(() => {
    live();
    if (awaited === 0) call('stillHere', {}).catch(() => {}); // the next call meets the same
  }, silenceMaxMs / SIGNS_PER_SILENCE).unref();
  return {
    call: call as Operator['call'],
    close: async () => {
      clearInterval(signs);
      socket.destroy();
    },
  };
}

function hungUp(silenceMaxMs: number): CommandError {
  const why = `since this command stood still for more than ${silenceMaxMs / 1_000} s`;
  return new CommandError(EXIT.failed, `the server hung up, ${why}; what was unfinished there is undone`);
}
