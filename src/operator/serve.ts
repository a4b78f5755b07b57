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
import { isUnused, readSeed, seedStore } from './animals.ts';
import type { Context, Tools } from './commands.ts';
import { BOUND, openEngine, openForCommand, PLACE, retryWhileInUse, storeName } from './data.ts';
import { createFirstKey, environment, PUBLISHED_PLANS } from './keys.ts';
import * as o from './options.ts';
import { asCommandError, ENDING_SIGNALS, EXIT, printLine, VERSION } from './program.ts';
import { goOn, openSocket, refuseSecond } from './socket.ts';
import { logTo, Metrics, metricsServer, stderrWithoutWaiting } from './watch.ts';

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
  environment: o.withDefault(environment, 'production', 'NAME', 'production takes ps_live_…, staging ps_test_…'),
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

export async function serve(settings: Settings, { commands, extras, texts }: Tools): Promise<string | undefined> {
  if (settings.check) return checkStart(settings, extras);
  const { environment, banAfter, data, store: database } = settings;
  const log = logTo(stderrWithoutWaiting(), clock);
  const fail = async (message: string, error?: unknown, status: number = EXIT.failed) => {
    log.error(message, { error });
    await log.close();
    process.exit(status);
  };
  process.on('uncaughtException', (error) => void fail(BUG, error)); // also rejections that nobody handles
  try {
    // A signal during the start takes effect after it. A second one, as by Ctrl-C under `npm start`, does nothing.
    const signal = new Promise((resolve) => ENDING_SIGNALS.forEach((name) => void process.on(name, resolve)));
    const metrics = settings.metrics && new Metrics();
    const onReply = (summary: Summary) => {
      metrics?.countReply(summary);
      if (settings.accessLog) log.access(summary);
    };
    const service = new Service({ settings, clock, log, onReply: metrics || settings.accessLog ? onReply : undefined });
    // systemd, or another parent, may hold the socket for this process. It has a queue: what is in it waits until the
    // store is open. Else the port opens before the store: early requests get 503, and where it is taken no store is made.
    const isHeld = process.env.LISTEN_PID === String(process.pid) && process.env.LISTEN_FDS === '1';
    if (isHeld && (texts.host ?? texts.port)) log.warn('a socket was given: --host and --port do not count');
    if (database === undefined) await retryWhileInUse(() => refuseSecond(data));
    let origin = isHeld ? '' : await listen(service.server, settings, log);

    const onFatal = async (error: Error) => {
      await service.drain(MAX_LAST_REPLIES_MS);
      const status = error instanceof DamagedError ? EXIT.damaged : EXIT.failed;
      await fail('the store failed; the next start shows which writes were kept', error.message, status);
    };
    const options = { clock, log, banAfter, isServing: true, onFatal, onBatch: metrics?.countBatch };
    const engine = await retryWhileInUse(() => openEngine(settings, extras, options));
    const { store, limiter } = engine;
    const context: Context = { engine, clock, environment };
    const scraped = metrics && metricsServer(() => metrics.text(context, service.counts));
    const scrapedAt = scraped && (await listen(scraped, settings.metrics!, log, '--metrics'));
    await seedStore(store, settings.seed);
    const closeSocket = database ? undefined : await openSocket(data, { context, commands, log });
    const firstKey = settings.firstKey && (await createFirstKey(context, settings.firstKey));

    // From here to `service.open` no turn of the event loop may pass, or requests that waited would get a 503.
    if (isHeld) origin = await listen(service.server, { fd: LISTEN_FDS_START }, log);
    const url = `${origin}/v1`;
    const added = extras.map((extra) => extra.serve?.({ settings, origin })).filter((one) => one !== undefined);
    // The address of this environment is the given one, or else that where the server listens.
    const name = environment === 'staging' ? 'stagingBaseUrl' : 'baseUrl';
    const described = { ...settings, [name]: settings[name] ?? url, version: VERSION };
    const endpoints = added.flatMap(({ endpoints }) => endpoints ?? []);
    endpoints.push(staticEndpoint('/openapi.json', JSON_UTF_8, () => JSON.stringify(openapiDocument(described))));
    service.open({ store, limiter, ready: () => engine.ready(), endpoints });

    const lines = [`petstore listening on ${url}`, ...added.flatMap(({ lines }) => lines ?? [])]; // the first is for programs
    if (firstKey) {
      lines.push(`The key ${firstKey.id}, which is shown only once:`, firstKey.key);
      lines.push(`curl -s -H 'Authorization: Bearer ${firstKey.key}' ${url}/pets`);
    }
    void printLine(lines.join('\n')).catch(() => {});
    const idle = { data: undefined, check: undefined, ...(isHeld && { host: undefined, port: undefined }) };
    const shown = { ...settings, ...idle, store: storeName(settings) }; // no URL, which may have a password
    log.info('listening', { url, metrics: scrapedAt && `${scrapedAt}/metrics`, version: VERSION, settings: shown });

    log.info('stopping', { signal: await signal });
    await Promise.all([closeSocket?.(), service.drain(MAX_DRAIN_MS, { leavesQueue: isHeld })]);
    await engine.close();
    scraped?.close().closeAllConnections();
    log.info('stopped');
  } catch (error) {
    const known = asCommandError(error, storeName(settings));
    await fail(known?.message ?? BUG, known ? undefined : error, known?.exit);
  }
  return undefined;
}

/** What `serve` would come to, as far as reading tells. Takes no lock: the store may be in use. */
async function checkStart(settings: Settings, extras: Tools['extras']): Promise<string> {
  const engine = await openForCommand(settings, extras, { readOnly: true, mustExist: false });
  if (settings.seed && isUnused(engine.store)) await readSeed(settings.seed);
  await engine.close();
  return 'ok';
}

const BACKLOG = 511;
/** The first descriptor that systemd passes. */
const LISTEN_FDS_START = 3;

/** Returns the origin by which a program on this machine reaches the server. `option`: what chooses another address. */
async function listen(server: Server, at: ListenOptions & { fd?: number }, log: Log, option = '--port') {
  const { host, port, fd } = at;
  try {
    await once(server.listen({ host, port, fd, backlog: BACKLOG }), 'listening');
  } catch (error) {
    const reason = (error as Error).message.replace(/^listen E\w+: /, '');
    const taken = `$1 is in use by another program: choose another with ${option}`;
    throw new Error(`cannot listen: ${reason.replace(/^address already in use (\S+)$/, taken)}`);
  }
  goOn(server, log);
  const given = server.address() as AddressInfo;
  return originAt(given.address, given.port);
}

/** No client can connect to a wildcard address: loopback stands in for it. */
function originAt(host: string, port: number): string {
  const address = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
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
