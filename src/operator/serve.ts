/** `petstore serve`: the life of a server, from its settings to its last line of log. */
import { randomInt } from 'node:crypto';
import type { AddressInfo, Server } from 'node:net';
import { Addresses } from '../access/addresses.ts';
import { Callers } from '../access/callers.ts';
import { SlotLimiter } from '../access/limiter.ts';
import { type Answered, App } from '../app.ts';
import { systemClock as clock } from '../clock.ts';
import type { ServeSettings } from '../config.ts';
import type { Reply } from '../http/reply.ts';
import { openAdmin } from './admin.ts';
import { seedStore } from './animals.ts';
import { type Context, restoreUsage } from './context.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import { createKey } from './keys.ts';
import { hostAndPort, listen } from './listen.ts';
import { type Log, Logger, stderrSink } from './logging.ts';
import { Metrics, openMetrics } from './metrics.ts';
import { openStore } from './opening.ts';
import { print } from './output.ts';
import { addPages } from './pages.ts';
import { triedWhileInUse } from './reach.ts';
import { isServed } from './socket.ts';
import { UsageRecorder } from './usage.ts';
import { VERSION } from './version.ts';

const DRAIN_MAX_MS = 10_000;
const SAME_WISH_MS = 1_000;
/** After the disk failed: long enough for the replies that say so. */
const LAST_REPLIES_MAX_MS = 1_000;

export async function serve(settings: ServeSettings): Promise<void> {
  const log = new Logger({ sink: stderrSink(), clock, level: settings.logLevel });
  process.on('SIGUSR1', () => {}); // else Node opens a debugger's port at this signal
  const end = (exit: number) => log.close().then(() => process.exit(exit));
  const endNow = (message: string) => (error: unknown) => {
    log.error(message, { error });
    void end(EXIT.failed);
  };
  process.on('uncaughtException', endNow('a bug ended the process'));
  process.on('unhandledRejection', endNow('a bug ended the process'));
  try {
    const signal = firstSignal(); // one that comes during the start is heeded after it
    const stop = await start(settings, log, endNow('the disk failed; a restart will tell what was kept'));
    log.info('stopping', { signal: await signal });
    await stop();
    log.info('stopped');
  } catch (error) {
    const { exit, message } = asCommandError(error, settings.data);
    log.error(message, error instanceof CommandError ? undefined : { error });
    await end(exit);
  }
  await log.close();
}

/**
 * Its repeat within a second is the same wish: Ctrl-C under `npm start` comes from the terminal and again from npm.
 * After that the next one does what a signal does by default: it ends the process at once.
 */
function firstSignal(): Promise<string> {
  return new Promise((resolve) => {
    const onSignal = (signal: string) => {
      setTimeout(() => {
        process.removeListener('SIGTERM', onSignal);
        process.removeListener('SIGINT', onSignal);
      }, SAME_WISH_MS).unref();
      resolve(signal);
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}

/** Serves until what it returns is called. */
async function start(settings: ServeSettings, log: Log, onFatal: (error: unknown) => void) {
  const { data: dir, environment, firstKey: plan } = settings;
  const metrics = settings.metrics && new Metrics();
  const pages = new Map<string, () => Reply>();
  const addresses = new Addresses({ clock, seed: randomInt(2 ** 32) });
  const app = new App({ settings, clock, addresses, pages, log, onAnswered: observer(settings, metrics, log) });

  // The port is open before the store recovers: who asks is told to come back. Of two failures the store's is told.
  const [listening] = await Promise.allSettled([listen(app.server, { host: settings.host, port: settings.port }, log)]);
  let hasFailed = false;
  const fatal = (error: unknown) => {
    if (!hasFailed) void app.drain(LAST_REPLIES_MAX_MS).then(() => onFatal(error));
  };
  const onNotice = (text: string) => log.warn(text);
  const open = () => openStore(dir, { onFatal: fatal, onNotice, observe: metrics });
  const store = await triedWhileInUse(open, () => isServed(dir));
  try {
    if (listening.status === 'rejected') throw listening.reason;
    const limiter = new SlotLimiter({ clock, banAfter: settings.banAfter });
    restoreUsage(limiter, store.read);
    const context = { store, dir, limiter, clock, environment };
    const usage = new UsageRecorder(context, log);
    if (settings.seed !== undefined) await seedStore(store, settings.seed);
    const scraped = metrics && (await openMetrics(settings.metrics!, { metrics, store, usage }, log));
    const admin = await openAdmin(context, VERSION, log);
    const firstKey =
      plan !== undefined && !hasKeyFor(context)
        ? (await createKey({ ...context, unfinished: new Map() }, { plan, name: 'first key' })).key
        : undefined;
    const url = `${originOf(app.server)}/v1`;
    const metricsUrl = scraped && `${originOf(scraped)}/metrics`;
    addPages(pages, settings, url);

    usage.start();
    app.open({ store, callers: new Callers(store.read, environment, clock), limiter });
    const firstSteps = firstKey && `\n${firstKey}\ncurl -s -H 'Authorization: Bearer ${firstKey}' ${url}/pets`;
    // Whoever started us may have stopped reading.
    print(`petstore listening on ${url}${firstSteps ?? ''}`).catch(() => {});
    log.info('listening', { url, metrics: metricsUrl, data: dir, version: VERSION, ...store.read.counts() });
    return async () => {
      await Promise.all([admin.close(), app.drain(DRAIN_MAX_MS)]);
      await usage.stop();
      await store.close();
      scraped?.close();
      scraped?.closeAllConnections();
    };
  } catch (error) {
    hasFailed = true;
    // So that the next start finds it clean. Why this start failed is not to be hidden by a store that does not close.
    await store.close().catch((closing) => log.error('the store could not be closed', { error: closing }));
    throw error;
  }
}

/** Whether there is a key that lets somebody in here. */
function hasKeyFor({ store, environment }: Pick<Context, 'store' | 'environment'>): boolean {
  for (const key of store.read.keys()) {
    if (key.revokedAt === undefined && key.environment === environment) return true;
  }
  return false;
}

function originOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return `http://${hostAndPort(address, port)}`;
}

function observer({ accessLog }: ServeSettings, metrics: Metrics | undefined, log: Log) {
  if (metrics === undefined && !accessLog) return undefined;
  return (answered: Answered) => {
    const { route, method, target, status, ms, requestId, keyId: key } = answered;
    metrics?.replied(route, status, ms);
    if (!accessLog) return;
    const address = answered.address();
    log.access({ requestId, method, target, status, ms: Math.round(ms * 1_000) / 1_000, key, address });
  };
}
