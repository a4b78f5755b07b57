/** `petstore serve`: the life of a server, from its settings to its last line of log. */
import { Callers } from '../access/callers.ts';
import { App } from '../app.ts';
import { systemClock as clock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Lab } from '../lab/lab.ts';
import type { Page } from '../pages.ts';
import { BoundError } from '../store/bounds.ts';
import { columnsOf } from '../store/changes.ts';
import { openAdmin } from './admin.ts';
import type { Content } from './animals.ts';
import { type Calls, command } from './command.ts';
import { addPages } from './console-and-document.ts';
import { asCommandError, EXIT } from './exit.ts';
import { type FirstSteps, firstSteps, giveFirstKey, tellFirstSteps } from './first-steps.ts';
import { Logger, stderrWithoutWaiting } from './logging.ts';
import { Metrics, observer } from './metrics.ts';
import { openMetrics } from './metrics-listener.ts';
import { maxBytesOf, openEngine, triedWhileInUse, whyTooLarge } from './opening.ts';
import { SERVE_OPTIONS, type ServeSettings, shownPlace } from './options.ts';
import { seedOf, seedStore } from './seed.ts';
import { connectionsThatFit, isServed, listen, originOf, ownNames } from './sockets.ts';
import { VERSION } from './version.ts';

/** Docker and others kill a service 10 s after the signal to stop: usage is to be written by then. */
const MAX_DRAIN_MS = 8_000;
/** After the disk failed: time for the replies that say so. */
const MAX_LAST_REPLIES_MS = 1_000;

const BUG = 'a bug ended the process';

/** Logs why, and ends the process with a status that is not 0. */
type EndNow = (message: string) => (error: unknown) => void;

/** `calls`: the commands that a running server performs. */
export const serveCommand = (calls: Calls) =>
  command({
    name: 'serve',
    does: 'run the service until SIGTERM, SIGINT or SIGHUP',
    options: SERVE_OPTIONS,
    check: (settings, given) => {
      const { lab, environment } = settings;
      if (lab && environment !== 'staging') return `${given('lab')} needs --environment staging`;
      return whyTooLarge(settings.maxStoreMb, String(given('maxStoreMb')));
    },
    run: (settings) => serve(settings, calls),
  });

export async function serve(settings: ServeSettings, calls: Calls, steps: FirstSteps = firstSteps): Promise<void> {
  const log = new Logger({ out: stderrWithoutWaiting(), clock });
  const end = (exit: number) => log.close().then(() => process.exit(exit));
  const endNow = (message: string) => (error: unknown) => {
    log.error(message, { error });
    void end(EXIT.failed);
  };
  process.on('uncaughtException', endNow(BUG)); // rejections that nobody handles come here too
  try {
    // A signal during the start takes effect after it. A second one, as by Ctrl-C under `npm start`, does nothing.
    const signal = new Promise((resolve) => process.on('SIGTERM', resolve).on('SIGINT', resolve).on('SIGHUP', resolve));
    const stop = await start(settings, { calls, log, endNow, steps });
    log.info('stopping', { signal: await signal });
    await stop();
    log.info('stopped');
  } catch (error) {
    const known = asCommandError(error, shownPlace(settings));
    log.error(known?.message ?? BUG, known ? undefined : { error });
    await end(known?.exit ?? EXIT.failed);
  }
  await log.close();
}

interface Around {
  calls: Calls;
  log: Logger;
  endNow: EndNow;
  steps: FirstSteps;
}

/** Starts to serve, and returns the function that stops. */
async function start(settings: ServeSettings, { calls, log, endNow, steps }: Around) {
  const { environment, seed, banAfter, data, store: database } = settings;
  const metrics = settings.metrics && new Metrics();
  const pages = new Map<string, Page>();
  const onAnswered = observer(settings, metrics, log);
  const maxConnections = connectionsThatFit(log);
  const bounded = { ...settings, maxConnections, hosts: ownNames(settings) };
  const app = new App({ settings: bounded, clock, pages, log, onAnswered });

  // The port opens before the store recovers: early requests get 503. If both fail, the store's failure is reported.
  const at = { host: settings.host, port: settings.port };
  const [listening] = await Promise.allSettled([listen(app.server, at, log)]);
  const failed = `${database ? 'the database holds another log' : 'the disk failed'}; the next start shows which writes were kept`;
  const onFatal = (error: unknown) => void app.drain(MAX_LAST_REPLIES_MS).then(() => endNow(failed)(error));
  const maxBytes = maxBytesOf(settings.maxStoreMb);
  const options = { clock, banAfter, log, maxBytes, onFatal, onBatch: metrics?.batch };
  const open = () => openEngine(settings, options);
  const engine = await triedWhileInUse(open, async () => !database && isServed(data));
  let admin: Awaited<ReturnType<typeof openAdmin>> | undefined;
  try {
    if (listening.status === 'rejected') throw listening.reason;
    const { store, limiter } = engine;
    const content = settings.lab ? await contentAtReset(seed) : undefined;
    if (seed !== undefined) await seedStore(store, seed, content);
    const lab = content && (await openLab(engine, content));
    const context = { engine, clock, environment, lab };
    const figures = metrics && (() => metrics.figures(app));
    const scraped = figures && (await openMetrics(settings.metrics!, { engine, log, figures }));
    admin = database ? undefined : await openAdmin(data, { context, calls, log });
    const firstKey = await giveFirstKey(context, settings).catch((error) => withoutKey(error, log));
    const origin = originOf(app.server);
    const url = `${origin}/v1`;
    addPages(pages, settings, url);
    app.open({ store, callers: new Callers(store, environment), limiter, ready: () => engine.ready(), lab });
    void tellFirstSteps(steps(origin, firstKey), origin, firstKey, { log, at: settings });
    const places = { url, metrics: scraped && `${originOf(scraped)}/metrics`, store: shownPlace(settings) };
    log.info('listening', { ...places, version: VERSION, ...store.read.counts() });
    return async () => {
      engine.upkeep.giveUp?.(); // a command that waits for a compaction is told that it was given up
      await Promise.all([admin?.close(), app.drain(MAX_DRAIN_MS)]);
      await engine.close();
      scraped?.close();
      scraped?.closeAllConnections();
    };
  } catch (error) {
    await admin?.close();
    // So that the next start finds it clean. A failure to close must not hide the failure of this start.
    await engine.close().catch((closing) => log.error('the store could not be closed', { error: closing }));
    throw error;
  }
}

/** Imported only here: a service without the lab has none of its code in memory. */
async function openLab(engine: Engine, content: Content): Promise<Lab> {
  const { Lab } = await import('../lab/lab.ts');
  return new Lab(engine, clock, content);
}

/** The content of a lab's store after its reset. */
async function contentAtReset(seed: string | undefined): Promise<Content> {
  return seed === undefined ? { categories: [], pets: columnsOf([]) } : seedOf(seed);
}

/** A store at its bound is served all the same. */
function withoutKey(error: Error, log: Logger): undefined {
  if (!(error instanceof BoundError)) throw error;
  log.warn(`no first key was made: ${error.message}`);
}
