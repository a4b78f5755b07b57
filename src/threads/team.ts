/** The threads beside the main one, as that one sees them: how they start, what they ask, how they end. */
import { getAsset, isSea } from 'node:sea';
import { setTimeout as wait } from 'node:timers/promises';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { App } from '../app.ts';
import type { Clock } from '../clock.ts';
import type { EngineOptions } from '../engine.ts';
import type { Logger } from '../operator/logging.ts';
import type { Figures } from '../operator/metrics.ts';
import type { ServeSettings } from '../operator/options.ts';
import type { Store } from '../store/model.ts';
import type { State } from '../store/state.ts';
import { Feed } from './feed.ts';
import { SharedLimiter } from './limiter.ts';
import { Line } from './line.ts';
import { clockOrigin, newMemory } from './memory.ts';
import { unpacked } from './passing.ts';
import type { Start } from './thread.ts';

/** A thread that was to drain is waited for no longer than this beyond its time. */
const MAX_LATE_MS = 1_000;
/** A thread that is asked for its counts is waited for so long: a scrape must not wait for one that is held up. */
const MAX_COUNTS_MS = 1_000;
/** The name of the program inside the single binary: see scripts/build.ts. */
const EMBEDDED = 'petstore.cjs';

interface Served extends Pick<Start, 'at' | 'url'> {
  app: App;
  store: Store;
}

interface TeamOptions {
  settings: ServeSettings;
  clock: Clock;
  log: Logger;
  /** A thread has ended that should not have. */
  onDeath: (error: Error) => void;
}

/** What one thread has told of its counts. */
interface Counted {
  line: Line;
  newest: Figures;
  /** If it was asked and has not answered yet: since when, and what resolves with its answer. */
  asked?: { at: number; answer: Promise<void> };
}

export class Team {
  readonly #options: TeamOptions;
  readonly #memory = newMemory();
  readonly #feed = new Feed(this.#memory.words);
  #lines: Line[] = [];
  #counted: Counted[] = [];
  #isEnding = false;

  constructor(options: TeamOptions) {
    this.#options = options;
  }

  /** By these the engine counts and tells for all threads. */
  readonly engine: Pick<EngineOptions, 'limiter' | 'onDurable'> = {
    limiter: (options) => new SharedLimiter(options, this.#memory),
    onDurable: (changes) => this.#feed.publish(changes),
  };

  /** Resolves when all threads have the whole state, and could answer. */
  async load({ app, store, at, url }: Served): Promise<void> {
    const { settings, clock, log } = this.#options;
    const channels = Array.from({ length: settings.threads - 1 }, () => new MessageChannel());
    const ports = channels.map(({ port1 }) => port1);
    this.#feed.begin(store.read as State, ports);
    const origins = { clockOrigin: clockOrigin(clock), unixOrigin: store.unix() - clock.now() };
    const answers = {
      write: async (asked: string) => JSON.stringify(await app.serveAsked(unpacked(asked))),
      log: (lines: string) => log.append(lines),
    };
    this.#lines = channels.map(({ port2: feed }) => {
      const worker = newWorker({ settings, memory: this.#memory, feed, at, url, ...origins });
      worker.on('error', (error) => this.#died(error));
      worker.on('exit', (status) => this.#died(new Error(`a thread ended with status ${status}`)));
      return new Line(worker, answers);
    });
    await this.#ask('load');
    if (!settings.metrics) return;
    const first = await this.#ask<Figures>('figures');
    this.#counted = first.map((newest, number) => ({ line: this.#lines[number], newest }));
  }

  /** Resolves when all listen. */
  async listen(): Promise<void> {
    await this.#ask('listen');
  }

  /**
   * The counts of each thread. Of one that is held up they are those that it told last, since a sum without them would
   * fall; and its event loop is late by the time for which it has said nothing.
   */
  figures(): Promise<Figures[]> {
    const { clock } = this.#options;
    return Promise.all(
      this.#counted.map(async (counted) => {
        counted.asked ??= { at: clock.now(), answer: this.#hear(counted) };
        const { asked } = counted;
        await Promise.race([asked.answer, wait(MAX_COUNTS_MS, undefined, { ref: false })]);
        if (counted.asked !== asked) return counted.newest;
        return { ...counted.newest, loopDelay: (clock.now() - asked.at) / 1_000 };
      }),
    );
  }

  async #hear(counted: Counted): Promise<void> {
    counted.newest = await counted.line.ask<Figures>('figures');
    counted.asked = undefined;
  }

  /** The other threads finish the requests under way, within so many milliseconds. */
  async drain(ms: number): Promise<void> {
    this.#isEnding = true;
    await Promise.race([this.#ask('drain', ms), wait(ms + MAX_LATE_MS)]);
  }

  #ask<R>(what: string, value?: unknown): Promise<R[]> {
    return Promise.all(this.#lines.map((line) => line.ask<R>(what, value)));
  }

  #died(error: Error): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#options.onDeath(error);
  }
}

/** This program again: the same file, which finds out that it is a thread. */
function newWorker(start: Start): Worker {
  const options = { workerData: start, transferList: [start.feed] };
  if (isSea()) return new Worker(getAsset(EMBEDDED, 'utf8'), { ...options, eval: true });
  return new Worker(process.argv[1], options);
}
