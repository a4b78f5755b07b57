/** `petstore serve`: the life of a server. Settings, listen, open, ready, signal, drain, close. */
import { systemClock as clock } from '../clock.ts';
import type { AllSettings } from '../extra.ts';
import { JSON_UTF_8 } from '../http/reply.ts';
import { openapiDocument } from '../service/openapi.ts';
import { staticEndpoint } from '../service/public.ts';
import type { PublicEndpoint, Summary } from '../service/routes.ts';
import { Service } from '../service/service.ts';
import { DamagedError, NoStoreError } from '../store/engine.ts';
import { StoreError } from '../store/model.ts';
import { isUnused, readSeed, seedStore } from './animals.ts';
import type { Context, Given, Program, Tools } from './command.ts';
import { openEngine, retryWhileInUse, storeName } from './data.ts';
import { createFirstKey } from './keys.ts';
import { givenSocket, listen, originOf } from './listen.ts';
import type { ServeSettings } from './options.ts';
import { asCommandError, EXIT, note, printLine, VERSION } from './program.ts';
import { openSocket, refuseSecond } from './socket.ts';
import { Logger, Metrics, metricsServer, stderrWithoutWaiting } from './watch.ts';

/** Docker and others kill a service 10 s after the signal to stop: usage is to be written by then. */
const MAX_DRAIN_MS = 7_000;
/** Time for the replies that say that the disk failed. */
const MAX_LAST_REPLIES_MS = 1_000;

const BUG = 'a bug ended the process';

export async function serve(settings: AllSettings, { program, given }: Tools): Promise<string | undefined> {
  if (settings.check) return checkStart(settings, program);
  const log = new Logger({ out: stderrWithoutWaiting(), clock });
  const exit = (status: number) => log.close().then(() => process.exit(status));
  const fail = (message: string, error: unknown) => {
    log.error(message, { error: error instanceof StoreError ? error.message : error });
    void exit(error instanceof DamagedError ? EXIT.damaged : EXIT.failed);
  };
  process.on('uncaughtException', (error) => fail(BUG, error)); // also rejections that nobody handles
  try {
    // A signal during the start takes effect after it. A second one, as by Ctrl-C under `npm start`, does nothing.
    const signal = new Promise((resolve) => process.on('SIGTERM', resolve).on('SIGINT', resolve).on('SIGHUP', resolve));
    const stop = await start(settings, program, given, log, fail);
    log.info('stopping', { signal: await signal });
    await stop();
    log.info('stopped');
  } catch (error) {
    const known = asCommandError(error, storeName(settings));
    log.error(known?.message ?? BUG, known ? undefined : { error });
    await exit(known?.exit ?? EXIT.failed);
  }
  return undefined;
}

/** What `serve` would come to, as far as reading tells. Takes no lock: the store may be in use. */
async function checkStart(settings: AllSettings, { extras }: Program): Promise<string> {
  const warn = (message: string) => void note(`petstore: ${message}`);
  const options = { clock, log: { info() {}, warn, error: warn }, readOnly: true, mustExist: false };
  const engine = await openEngine(settings, options, extras).catch((error) => {
    if (error instanceof NoStoreError) return undefined; // a start makes it
    throw error;
  });
  if (engine === undefined || isUnused(engine.store)) if (settings.seed) await readSeed(settings.seed);
  await engine?.close();
  return 'ok';
}

/** Starts to serve. Returns the function that stops. `fail` logs why, and ends the process with a status that is not 0. */
async function start(
  settings: AllSettings,
  program: Program,
  given: Given,
  log: Logger,
  fail: (message: string, error: unknown) => void,
): Promise<() => Promise<void>> {
  const { host, port, environment, banAfter, data, store: database, accessLog } = settings;
  const metrics = settings.metrics && new Metrics();
  const tellReply = (summary: Summary) => {
    metrics?.countReply(summary);
    if (accessLog) log.access(summary);
  };
  const onReply = metrics || accessLog ? tellReply : undefined;
  const held = givenSocket();
  const idle = ['host', 'port'].filter((name) => given.texts[name] !== undefined).map(given.labelOf);
  if (held !== undefined && idle.length > 0) {
    log.warn(`a socket was given: ${idle.join(' and ')} ${idle.length > 1 ? 'do' : 'does'} not count`);
  }
  const service = new Service({ settings, clock, log, onReply, waitsToOpen: held !== undefined });

  // The port opens before the store is read: early requests get 503. If both fail, the store's failure is reported.
  const early = held === undefined ? listen(service.server, { host, port }, log) : undefined;
  const [listening] = await Promise.allSettled([early]);
  const onFatal = (error: unknown) =>
    void service
      .drain(MAX_LAST_REPLIES_MS)
      .then(() => fail('the store failed; the next start shows which writes were kept', error));
  const engine = await retryWhileInUse(async () => {
    if (database === undefined) await refuseSecond(data);
    return openEngine(settings, { clock, log, banAfter, onFatal, onBatch: metrics?.countBatch }, program.extras);
  });
  const context: Context = { engine, clock, environment };
  try {
    if (listening.status === 'rejected') throw listening.reason;
    const { store, limiter } = engine;
    await seedStore(store, settings.seed);
    const page = () => metrics!.text({ ...service.counts, ...context });
    const scraped = settings.metrics && metricsServer(page);
    if (scraped && settings.metrics) await listen(scraped, settings.metrics, log, '--metrics');
    const closeSocket = database ? undefined : await openSocket(data, { context, commands: program.commands, log });
    const firstKey = settings.firstKey && (await createFirstKey(context, settings.firstKey));
    // A socket that is held for us has a queue: what is in it waits until the store is open.
    if (held !== undefined) await listen(service.server, { fd: held }, log);
    const origin = originOf(service.server);
    const opened = await Promise.all(program.extras.map((extra) => extra.serve?.({ settings, origin })));
    const added = opened.filter((one) => one !== undefined);
    const endpoints = [documentPage(settings, origin), ...added.flatMap(({ endpoints }) => endpoints ?? [])];
    service.open({ store, limiter, ready: () => engine.ready(), endpoints });
    const first = `petstore listening on ${origin}/v1`; // for programs
    const lines = [first, ...added.flatMap(({ lines }) => lines ?? []), ...firstSteps(origin, firstKey)];
    void printLine(lines.join('\n')).catch(() => {});
    const addresses = { url: `${origin}/v1`, metrics: scraped && `${originOf(scraped)}/metrics` };
    const own = held === undefined ? settings : { ...settings, host: undefined, port: undefined };
    const shown = { ...own, store: storeName(settings), data: undefined, json: undefined, check: undefined }; // no URL, in which a password may be
    log.info('listening', { ...addresses, version: VERSION, settings: shown });
    return async () => {
      await Promise.all([closeSocket?.(), service.drain(MAX_DRAIN_MS, { leavesQueue: held !== undefined })]);
      await engine.close();
      scraped?.close();
      scraped?.closeAllConnections();
    };
  } catch (error) {
    // The next start is to find it clean. A failure to close must not hide that of this start.
    await engine.close().catch((closing) => log.error('the store could not be closed', { error: closing }));
    throw error;
  }
}

/** The OpenAPI document. The address of this environment is the given one, or else that where the server listens. */
function documentPage({ environment, baseUrl, stagingBaseUrl }: ServeSettings, origin: string): PublicEndpoint {
  const here = `${origin}/v1`;
  const own =
    environment === 'staging'
      ? { baseUrl, stagingBaseUrl: stagingBaseUrl ?? here }
      : { baseUrl: baseUrl ?? here, stagingBaseUrl };
  return staticEndpoint('/openapi.json', JSON_UTF_8, () =>
    JSON.stringify(openapiDocument({ ...own, environment, version: VERSION })),
  );
}

/** The lines below the first one. A new key stands alone on its line, and then in a line to paste. */
function firstSteps(origin: string, first: Awaited<ReturnType<typeof createFirstKey>>): string[] {
  if (first === undefined) return [];
  const curl = `curl -s -H 'Authorization: Bearer ${first.key}' ${origin}/v1/pets`;
  return [`The key ${first.id}, which is shown only once:`, first.key, curl];
}
