/** A command's way to the store: through the running server if there is one, else by opening it here. */
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import * as v from 'valibot';
import { SlotLimiter } from '../access/limiter.ts';
import { systemClock } from '../clock.ts';
import { type ArgsOf, type CallName, type ResultOf, runCall, undoUnfinished } from './calls.ts';
import { type Context, restoreUsage } from './context.ts';
import { CommandError, EXIT } from './exit.ts';
import { mustHoldStore, openStore } from './opening.ts';
import { Progress } from './progress.ts';
import { connectTo, onLines, sendLine, unanswered } from './socket.ts';

/** A server that has our connection but does not greet is stopped or starting. */
const GREETING_MAX_WAIT_MS = 3_000;
/** Another command holds the store for a moment only. */
const IN_USE_MAX_WAIT_MS = 3_000;
const IN_USE_RETRY_MS = 100;

export interface Operator {
  call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>>;
  close(): Promise<void>;
}

/** `mayMake`: where there is no store, begin one. */
export async function reach(dir: string, mayMake = false): Promise<Operator> {
  return serverOr(dir, () => {
    if (!mayMake) mustHoldStore(dir);
    return openHere(dir);
  });
}

/** The server that runs there; without one, what `here` gives, tried again while another command is at work. */
export async function serverOr<R>(dir: string, here: () => Promise<R>): Promise<Operator | R> {
  const end = performance.now() + IN_USE_MAX_WAIT_MS;
  for (;;) {
    const socket = await connectTo(dir);
    if (socket !== undefined) return new Remote(socket, dir).greeted();
    try {
      return await here();
    } catch (error) {
      const inUse = error instanceof CommandError && error.exit === EXIT.inUse;
      if (!inUse || performance.now() > end) throw error;
      await wait(IN_USE_RETRY_MS);
    }
  }
}

async function openHere(dir: string): Promise<Operator> {
  const progress = new Progress(`reading ${dir}`);
  const onNotice = (text: string) => void process.stderr.write(`petstore: ${text}\n`);
  const store = await openStore(dir, { onProgress: progress.at, onNotice }).finally(() => progress.end());
  const limiter = new SlotLimiter({ clock: systemClock });
  restoreUsage(limiter, store.read);
  const context: Context = {
    store,
    dir,
    limiter,
    clock: systemClock,
    environment: 'production',
    unfinished: new Map(),
  };
  return {
    call: async <N extends CallName>(name: N, args: ArgsOf<N>) => (await runCall(context, name, args)) as ResultOf<N>,
    close: async () => {
      await undoUnfinished(context);
      await store.close();
    },
  };
}

const reply = v.union([
  v.object({ error: v.object({ exit: v.number(), message: v.string() }) }),
  v.object({ result: v.optional(v.unknown()) }),
]);

class Remote implements Operator {
  readonly #socket: Socket;
  readonly #dir: string;
  /** Whoever waits for the next line. */
  #settle: { resolve(line: string): void; reject(error: Error): void } | undefined;
  #ended = false;

  constructor(socket: Socket, dir: string) {
    this.#socket = socket;
    this.#dir = dir;
    const lost = () => {
      this.#ended = true;
      this.#settle?.reject(new CommandError(EXIT.failed, 'the server ended before it answered'));
    };
    onLines(socket, (line) => this.#settle?.resolve(line), lost);
    socket.on('close', lost);
  }

  async greeted(): Promise<this> {
    const tooLate = setTimeout(() => this.#settle?.reject(unanswered(this.#dir)), GREETING_MAX_WAIT_MS);
    try {
      await this.#reply();
      return this;
    } catch (error) {
      this.#socket.destroy();
      throw error;
    } finally {
      clearTimeout(tooLate);
    }
  }

  async call<N extends CallName>(name: N, args: ArgsOf<N>): Promise<ResultOf<N>> {
    const result = this.#reply();
    sendLine(this.#socket, { call: name, args });
    return (await result) as ResultOf<N>;
  }

  async close(): Promise<void> {
    this.#socket.destroy();
  }

  async #reply(): Promise<unknown> {
    const said = v.parse(reply, JSON.parse(await this.#nextLine()));
    if ('error' in said) throw new CommandError(said.error.exit, said.error.message);
    return said.result;
  }

  #nextLine(): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      if (this.#ended) reject(new CommandError(EXIT.failed, 'the server ended before it answered'));
    });
  }
}
