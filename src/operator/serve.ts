/** `petstore serve`: the life of a server, from its settings to its last line of log. */
import { Addresses } from '../access/addresses.ts';
import { Callers } from '../access/callers.ts';
import { App } from '../app.ts';
import { systemClock as clock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Answered } from '../exchange.ts';
import type { Reply } from '../http/reply.ts';
import type { Lab } from '../lab/lab.ts';
import { columnsOf } from '../store/operations.ts';
import { openAdmin } from './admin.ts';
import { mistyped } from './arguments.ts';
import { type Calls, command } from './command.ts';
import { asCommandError, EXIT } from './exit.ts';
import { createFirstKey } from './keys.ts';
import { Logger, stderrWithoutWaiting } from './logging.ts';
import { Metrics, openMetrics } from './metrics.ts';
import { openEngine, triedWhileInUse } from './opening.ts';
import { SERVE_OPTIONS, type ServeSettings, shownPlace } from './options.ts';
import { isDiscarded, print } from './output.ts';
import { addPages } from './pages.ts';
import { seedOf, seedStore } from './seed.ts';
import { isServed, listen, originOf } from './sockets.ts';
import { PROGRAM, VERSION } from './version.ts';

const MAX_DRAIN_MS = 10_000;
/** After the disk failed: long enough for the replies that say so. */
const MAX_LAST_REPLIES_MS = 1_000;

/** `calls`: what commands may ask of the running server. */
export const serveCommand = (calls: Calls) =>
  command({
    name: 'serve',
    does: 'run the service until SIGTERM or SIGINT',
    options: SERVE_OPTIONS,
    check: ({ lab, environment }, given) =>
      lab && environment !== 'staging' ? `${given('lab')} needs --environment staging` : undefined,
    run: (settings) => serve(settings, calls),
  });

async function serve(settings: ServeSettings, calls: Calls): Promise<void> {
  const log = new Logger({ out: stderrWithoutWaiting(), clock });
  for (const text of mistyped(SERVE_OPTIONS, process.env)) log.warn(text);
  process.on('SIGUSR1', () => {}); // else Node opens a debugger's port at this signal
  const end = (exit: number) => log.close().then(() => process.exit(exit));
  const endNow = (message: string) => (error: unknown) => {
    log.error(message, { error });
    void end(EXIT.failed);
  };
  process.on('uncaughtException', endNow('a bug ended the process')); // rejections that nobody handles come here too
  try {
    // One that comes during the start is heeded after it; its repeat, as of Ctrl-C under `npm start`, is the same wish.
    const signal = new Promise((resolve) => process.on('SIGTERM', resolve).on('SIGINT', resolve));
    const failed = settings.store ? 'the database has another history' : 'the disk failed';
    const stop = await start(settings, calls, log, endNow(`${failed}; the next start tells what was kept`));
    log.info('stopping', { signal: await signal });
    await stop();
    log.info('stopped');
  } catch (error) {
    const known = asCommandError(error, shownPlace(settings));
    log.error(known?.message ?? 'a bug ended the start', known ? undefined : { error });
    await end(known?.exit ?? EXIT.failed);
  }
  await log.close();
}

/** Serves until what it returns is called. */
async function start(settings: ServeSettings, calls: Calls, log: Logger, onFatal: (error: unknown) => void) {
  const { environment, seed, firstKey: plan, banAfter, data, store: database } = settings;
  const metrics = settings.metrics && new Metrics();
  const pages = new Map<string, () => Reply>();
  const addresses = new Addresses({ clock });
  const app = new App({ settings, clock, addresses, pages, log, onAnswered: observer(settings, metrics, log) });

  // The port is open before the store recovers: who asks is told to come back. Of two failures the store's is told.
  const [listening] = await Promise.allSettled([listen(app.server, { host: settings.host, port: settings.port }, log)]);
  const fatal = (error: unknown) => void app.drain(MAX_LAST_REPLIES_MS).then(() => onFatal(error));
  const open = () => openEngine(settings, { clock, banAfter, log, onFatal: fatal, onBatch: metrics?.batch });
  const engine = await triedWhileInUse(open, async () => !database && isServed(data));
  try {
    if (listening.status === 'rejected') throw listening.reason;
    const { store, limiter } = engine;
    if (seed !== undefined) await seedStore(store, seed);
    const lab = settings.lab ? await openLab(engine, seed) : undefined;
    const context = { engine, clock, environment, grade: lab?.grade };
    const scraped = metrics && (await openMetrics(settings.metrics!, { metrics, engine, log }));
    const admin = database ? undefined : await openAdmin(data, { context, calls, log });
    const firstKey = plan && (await createFirstKey(context, plan));
    const origin = originOf(app.server);
    const url = `${origin}/v1`;
    addPages(pages, settings, url);
    app.open({ store, callers: new Callers(store, environment), limiter, ready: () => engine.ready(), lab });
    void tellFirstSteps(origin, firstKey, log);
    const at = { url, metrics: scraped && `${originOf(scraped)}/metrics`, store: shownPlace(settings) };
    log.info('listening', { ...at, version: VERSION, ...store.read.counts() });
    return async () => {
      await Promise.all([admin?.close(), app.drain(MAX_DRAIN_MS)]);
      await engine.close();
      scraped?.close();
      scraped?.closeAllConnections();
    };
  } catch (error) {
    // So that the next start finds it clean. Why this start failed is not to be hidden by a store that does not close.
    await engine.close().catch((closing) => log.error('the store could not be closed', { error: closing }));
    throw error;
  }
}

/** Loaded only here: a service without it has none of it in memory. */
async function openLab(engine: Engine, seed: string | undefined): Promise<Lab> {
  const { Lab } = await import('../lab/lab.ts');
  return new Lab(engine, clock, seed === undefined ? { categories: [], pets: columnsOf([]) } : await seedOf(seed));
}

/** The first line is for programs. A new key stands alone on its line, and then in a line to paste. */
async function tellFirstSteps(origin: string, first: { id: string; key: string } | undefined, log: Logger) {
  const lines = [`petstore listening on ${origin}/v1`, `The console: ${origin}/`];
  if (first !== undefined) {
    lines.push(`The key ${first.id}, which is shown only once:`, first.key);
    lines.push(`curl -s -H 'Authorization: Bearer ${first.key}' ${origin}/v1/pets`);
  }
  const wasPrinted = await print(lines.join('\n')).then(
    () => !isDiscarded(),
    () => false,
  );
  if (wasPrinted || first === undefined) return;
  log.warn(`nobody read the first key: give it a new secret with ${PROGRAM} keys rotate ${first.id} --grace 0s`);
}

/** What is done with every request that was answered; nothing at all where nobody wants to know. */
function observer({ accessLog }: ServeSettings, metrics: Metrics | undefined, log: Logger) {
  if (metrics === undefined && !accessLog) return undefined;
  return ({ route, method, target, status, ms, requestId, keyId: key, address }: Answered) => {
    metrics?.replied(route, status, ms);
    const rounded = Math.round(ms * 1_000) / 1_000;
    if (accessLog) log.access({ requestId, method, target, status, ms: rounded, key, address: address() });
  };
}
