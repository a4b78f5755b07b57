/** One thread beside the main one: it answers every GET by itself, and passes writes to the main one. */
import { Writable } from 'node:stream';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { Callers } from '../access/callers.ts';
import { App, type AppSettings } from '../app.ts';
import { systemClock } from '../clock.ts';
import { addPages } from '../operator/console-and-document.ts';
import { Logger } from '../operator/logging.ts';
import { Metrics, observer } from '../operator/metrics.ts';
import type { ServeSettings } from '../operator/options.ts';
import { listen } from '../operator/sockets.ts';
import type { Page } from '../pages.ts';
import { Follower } from './feed.ts';
import { SharedLimiter } from './limiter.ts';
import { Line } from './line.ts';
import { clockOrigin, type Memory } from './memory.ts';
import { passing } from './passing.ts';

/** The data that a thread is started with. */
export interface Start {
  settings: ServeSettings & Pick<AppSettings, 'maxConnections' | 'hosts'>;
  memory: Memory;
  feed: MessagePort;
  /** Where to listen, and how that is told. */
  at: { host: string; port: number };
  url: string;
  /** Of the thread that starts it; and store time when the clock of that one stood at 0. */
  clockOrigin: number;
  unixOrigin: number;
}

/** Resolves when all is drained. */
export async function work(): Promise<void> {
  const start: Start = workerData;
  const { settings, memory, at, url } = start;
  const ahead = clockOrigin(systemClock) - start.clockOrigin;
  const clock = { now: () => systemClock.now() + ahead, wall: systemClock.wall };

  let over = () => {};
  const isOver = new Promise<void>((resolve) => (over = resolve));
  const line: Line = new Line(parentPort!, {
    load: () => {}, // it has, when it hears this
    listen: () => listen(app.server, { ...at, reusePort: true }, log).then(() => {}),
    figures: () => metrics?.figures(app),
    drain: async (ms: number) => {
      await app.drain(ms);
      await log.close();
      setImmediate(() => setImmediate(over)); // once the answer has left
    },
  });

  // What waits here is bounded by the Logger: the next lines leave when the main thread has taken these.
  const writev: Writable['_writev'] = (chunks, done) => {
    const lines = chunks.map(({ chunk }) => chunk).join('');
    line.ask('log', lines).then(() => done(), done);
  };
  const log = new Logger({ out: new Writable({ decodeStrings: false, writev }), clock });
  const metrics = settings.metrics && new Metrics();
  const store = new Follower({
    words: memory.words,
    port: start.feed,
    unix: () => Math.floor(start.unixOrigin + clock.now()),
  });
  const limiter = new SharedLimiter({ clock, unix: store.unix, banAfter: settings.banAfter }, memory);
  const pages = new Map<string, Page>();
  addPages(pages, settings, url);
  const app: App = new App({ settings, clock, pages, log, onAnswered: observer(settings, metrics, log) });
  const callers = new Callers(store, settings.environment);
  app.open({ store, callers, limiter, ready: () => true, passToWriter: passing(line, settings.threads) });
  await isOver;
}
