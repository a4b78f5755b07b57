/** `petstore serve`: the life of a server. Settings, listen, open, ready, signal, drain, close. */
import { once } from 'node:events';
import { type AddressInfo, isIPv6, type ListenOptions, type Server } from 'node:net';
import { systemClock as clock } from '../clock.ts';
import { JSON_UTF_8 } from '../http/reply.ts';
import { openapiDocument } from '../service/openapi.ts';
import { staticEndpoint } from '../service/public.ts';
import type { Summary } from '../service/routes.ts';
import { Service } from '../service/service.ts';
import { DamagedError, type Log } from '../store/engine.ts';
import { ENVIRONMENTS, StoreError } from '../store/model.ts';
import { isUnused, readSeed, seedStore } from './animals.ts';
import type { Context, Tools } from './commands.ts';
import { BOUND, openEngine, openForCommand, PLACE, retryWhileInUse, storeName } from './data.ts';
import { createFirstKey, PUBLISHED_PLANS } from './keys.ts';
import * as o from './options.ts';
import { asCommandError, ENDING_SIGNALS, EXIT, printLine, VERSION } from './program.ts';
import { goOn, openSocket, refuseSecond } from './socket.ts';
import { type Logger, logTo, Metrics, metricsServer, stderrWithoutWaiting } from './watch.ts';

const host = o.text('a host name or an IP address', /^[\w.:%-]{1,253}$/);
/** As browsers send it. */
const origin = o.text(
  'an origin such as https://shop.example, or *',
  /^(?:\*|https?:\/\/[^*]+)$/,
  (text) => text === '*' || (URL.canParse(text) && new URL(text).origin === text),
);
/** No user, since messages and pages repeat it. No other path: links in replies are `/v1/…`. */
const baseUrl = o.text(
  'an http or https address with the path /v1, such as https://api.example/v1',
  /^https?:\/\/[^/?#@*]+\/v1$/,
  (text) => URL.canParse(text) && new URL(text).href === text,
);

export const LISTENING = {
  host: o.withDefault(host, '127.0.0.1', 'HOST', 'address to listen on'),
  port: o.withDefault(o.integer(0, 65_535), '8080', 'N', 'port, 0 for a free one'),
};
export const SERVE = {
  ...LISTENING,
  ...PLACE,
  seed: o.optional(o.path, 'FILE', 'fill an empty store from a file; demo is built in'),
  firstKey: o.optional(o.choice(PUBLISHED_PLANS), 'PLAN', 'make a key if none works'),
  environment: o.withDefault(
    o.choice(ENVIRONMENTS),
    'production',
    'NAME',
    'production takes ps_live_…, staging ps_test_…',
  ),
  corsOrigin: o.optional(origin, 'ORIGIN', 'let web pages of this origin call, or of all: *'),
  trustProxy: o.withDefault(o.integer(0, 10), '0', 'N', 'proxies that set X-Forwarded-For'),
  keepAlive: o.withDefault(o.integer(1, 3_600), '5', 'SECONDS', 'idle time, above a proxy’s'),
  connectionsPerAddress: o.withDefault(o.integer(1, 100_000), '100', 'N', 'at a time'),
  banAfter: o.optional(o.integer(0, 1_000_000), 'N', 'refusals a minute that ban, 0: never', '5 × the limit'),
  ...BOUND,
  accessLog: o.flag('log a line for every request'),
  metrics: o.optional(o.hostPort, 'HOST:PORT', 'serve metrics for Prometheus there, at /metrics'),
  baseUrl: o.optional(baseUrl, 'URL', 'production address in the document, with /v1'),
  stagingBaseUrl: o.optional(baseUrl, 'URL', 'staging address in the document, with /v1'),
  check: o.flag('say whether a start would succeed; change nothing'),
};
type Settings = o.Values<typeof SERVE>;

/** Docker and others kill a service 10 s after the signal to stop: usage is to be written by then. */
const MAX_DRAIN_MS = 7_000;
/** Time for the replies that say that the disk failed. */
const MAX_LAST_REPLIES_MS = 1_000;

const BUG = 'a bug ended the process';

export async function serve(settings: Settings, tools: Tools): Promise<string | undefined> {
  if (settings.check) return checkStart(settings, tools);
  const log = logTo(stderrWithoutWaiting(), clock);
  const exit = (status: number) => log.close().then(() => process.exit(status));
  const fail = (message: string, error: unknown) => {
    log.error(message, { error: error instanceof StoreError ? error.message : error });
    void exit(error instanceof DamagedError ? EXIT.damaged : EXIT.failed);
  };
  process.on('uncaughtException', (error) => fail(BUG, error)); // also rejections that nobody handles
  try {
    // A signal during the start takes effect after it. A second one, as by Ctrl-C under `npm start`, does nothing.
    const signal = new Promise((resolve) => ENDING_SIGNALS.forEach((name) => void process.on(name, resolve)));
    const stop = await start(settings, tools, log, fail);
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
async function checkStart(settings: Settings, { extras }: Tools): Promise<string> {
  const engine = await openForCommand(settings, extras, { readOnly: true, mustExist: false });
  if (settings.seed && isUnused(engine.store)) await readSeed(settings.seed);
  await engine.close();
  return 'ok';
}

/** Starts to serve. Returns the function that stops. `fail` logs why, and ends the process with a status that is not 0. */
async function start(
  settings: Settings,
  { commands, extras, texts }: Tools,
  log: Logger,
  fail: (message: string, error: unknown) => void,
): Promise<() => Promise<void>> {
  const { host, port, environment, banAfter, data, store: database } = settings;
  const metrics = settings.metrics && new Metrics();
  const onReply = (summary: Summary) => {
    metrics?.countReply(summary);
    if (settings.accessLog) log.access(summary);
  };
  // systemd, or another parent, may hold the socket for this process. It has a queue: what is in it waits until the store
  // is open.
  const isHeld = process.env.LISTEN_PID === String(process.pid) && process.env.LISTEN_FDS === '1';
  if (isHeld && (texts.host ?? texts.port)) log.warn('a socket was given: --host and --port do not count');
  const service = new Service({ settings, clock, log, onReply });

  if (database === undefined) await retryWhileInUse(() => refuseSecond(data));
  // Else the port opens before the store: early requests get 503, and where it is taken no store is made.
  if (!isHeld) await listen(service.server, { host, port }, log);
  const onFatal = (error: unknown) =>
    void service
      .drain(MAX_LAST_REPLIES_MS)
      .then(() => fail('the store failed; the next start shows which writes were kept', error));
  const options = { clock, log, banAfter, isServing: true, onFatal, onBatch: metrics?.countBatch };
  const engine = await retryWhileInUse(() => openEngine(settings, extras, options));
  try {
    const context: Context = { engine, clock, environment };
    const { store, limiter } = engine;
    const scraped = metrics && metricsServer(() => metrics.text(context, service.counts));
    if (scraped) await listen(scraped, settings.metrics!, log, '--metrics');
    await seedStore(store, settings.seed);
    const closeSocket = database ? undefined : await openSocket(data, { context, commands, log });
    const firstKey = settings.firstKey && (await createFirstKey(context, settings.firstKey));
    // From here to `service.open` no turn of the event loop may pass, or requests that waited would get a 503.
    if (isHeld) await listen(service.server, { fd: LISTEN_FDS_START }, log);
    const origin = originOf(service.server);
    const url = `${origin}/v1`;
    const opened = extras.map((extra) => extra.serve?.({ settings, origin }));
    const added = opened.filter((one) => one !== undefined);
    // The address of this environment is the given one, or else that where the server listens.
    const name = environment === 'staging' ? 'stagingBaseUrl' : 'baseUrl';
    const described = { ...settings, [name]: settings[name] ?? url, version: VERSION };
    const document = () => JSON.stringify(openapiDocument(described));
    const endpoints = [
      staticEndpoint('/openapi.json', JSON_UTF_8, document),
      ...added.flatMap(({ endpoints }) => endpoints ?? []),
    ];
    service.open({ store, limiter, ready: () => engine.ready(), endpoints });
    const lines = [`petstore listening on ${url}`, ...added.flatMap(({ lines }) => lines ?? [])]; // the first is for programs
    if (firstKey) {
      lines.push(`The key ${firstKey.id}, which is shown only once:`, firstKey.key);
      lines.push(`curl -s -H 'Authorization: Bearer ${firstKey.key}' ${url}/pets`);
    }
    void printLine(lines.join('\n')).catch(() => {});
    const addresses = { url, metrics: scraped && `${originOf(scraped)}/metrics` };
    const idle = { data: undefined, check: undefined, ...(isHeld && { host: undefined, port: undefined }) };
    const shown = { ...settings, ...idle, store: storeName(settings) }; // no URL, which may have a password
    log.info('listening', { ...addresses, version: VERSION, settings: shown });
    return async () => {
      await Promise.all([closeSocket?.(), service.drain(MAX_DRAIN_MS, { leavesQueue: isHeld })]);
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

const BACKLOG = 511;
/** The first descriptor that systemd passes. */
const LISTEN_FDS_START = 3;

/** `option`: the one that chooses another address. */
async function listen(server: Server, address: ListenOptions | { fd: number }, log: Log, option = '--port') {
  try {
    await once(server.listen({ ...address, backlog: BACKLOG }), 'listening');
  } catch (error) {
    const reason = (error as Error).message.replace(/^listen E\w+: /, '');
    const taken = `$1 is in use by another program: choose another with ${option}`;
    throw new Error(`cannot listen: ${reason.replace(/^address already in use (\S+)$/, taken)}`);
  }
  goOn(server, log);
}

/** No client can connect to a wildcard address: loopback stands in for it. */
const WILDCARDS: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** The origin by which a program on this machine reaches a server. */
function originAt(host: string, port: number): string {
  const address = WILDCARDS[host] ?? host;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

function originOf(server: Server): string {
  const { address, port } = server.address() as AddressInfo;
  return originAt(address, port);
}

const MAX_READY_MS = 3_000;

/** Asks the service that listens there whether it serves. Throws an Error that says why not. */
export async function askReady({ host, port }: { host: string; port: number }) {
  const url = `${originAt(host, port)}/readyz`;
  const reply = await fetch(url, { signal: AbortSignal.timeout(MAX_READY_MS) }).catch(() => undefined);
  if (reply === undefined) throw new Error(`no reply from ${url}: is it another --host or --port?`);
  if (!reply.ok) throw new Error(`${url} says ${reply.status}: ${(await reply.text()).trim()}`);
  return { ready: url };
}
