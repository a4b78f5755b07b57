/**
 * The HTTP server: node:http with every setting explicit, a reply of ours wherever it would answer by itself, the bounds
 * on connections, and the stop.
 */
import { createServer, type Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import { balance, Connection, type Incoming } from './connection.ts';
import { type ApiError, badRequest, fromParserError, MAX_HEADER_BYTES, MAX_HEADER_PAIRS } from './errors.ts';
import type { Reply } from './reply.ts';

const MAX_CONNECTIONS = 10_000;
/** Each can make node:http parse a packet of 64 KiB, of 3,600 requests and 5 MB of objects, before anybody is asked. */
const CONNECTIONS_PER_ADDRESS = 100;
/** A connection that has sent too much counts for so long after its end: else its client would connect again at once. */
const FLOOD_REST_MS = 500;
/** A client that neither sends nor reads for so long is ended. */
const MAX_STILL_MS = 30_000;
/**
 * When the service stops, connections that seem idle stay open this long: a request may be on its way, and closing under
 * it would cost its sender the reply. A request in that time gets a refusal.
 */
const IDLE_GRACE_MS = 300;

/** It has a target of its own form, and comes by an event of its own. */
const CONNECT = badRequest('CONNECT is not served here');

interface Options {
  readonly clock: Clock;
  /** Seconds for which a connection may stay unused. */
  readonly keepAlive: number;
  readonly connectionsPerAddress?: number;
  /** The name under which a socket's connections are counted; absent behind a proxy, whose address all have. */
  readonly addressOf?: (socket: Socket) => string;
  /** The reply to a request; headers may be added to it. Does not reject. */
  handle(incoming: Incoming): Promise<Reply>;
  /** The reply to what is not handled. `incoming` is missing if it cannot be parsed, or did not come in time. */
  refusal(why: ApiError, socket: Socket, incoming?: Incoming): Reply;
  /** Called when a connection was refused. */
  onRefused(): void;
}

export class HttpServer {
  readonly server: Server;
  readonly open = new Map<Socket, Connection>();
  /** Connections that were refused since the start, by the bound that they met. */
  readonly refused = { maximum: 0, address: 0 };
  isStopping = false;
  /** True: a request that comes now is refused, unless it is for everybody. */
  refusesLate = false;
  readonly options: Options;
  /** By the address, or where addresses are not told apart by the socket. */
  readonly #ofAddress = new Map<string | Socket, Set<Connection>>();
  #accepted = 0;

  constructor(options: Options) {
    this.options = options;
    const settings = {
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      connectionsCheckingInterval: 2_000, // with node's own 30 s, a slow client could far exceed these time-outs
      keepAliveTimeout: 1_000 * options.keepAlive,
      maxHeaderSize: MAX_HEADER_BYTES,
      insecureHTTPParser: false,
      requireHostHeader: false, // else node:http would answer by itself; `checkMessage` makes this check
      noDelay: true,
      optimizeEmptyRequests: true, // for speed: a request without a body is no stream; Node 20 does not know this
    };
    const server = createServer(settings);
    this.server = server;
    server.maxConnections = MAX_CONNECTIONS;
    server.maxRequestsPerSocket = 0;
    server.maxHeadersCount = MAX_HEADER_PAIRS + 28; // above our own maximum: a request that is served has lost none
    server.timeout = MAX_STILL_MS;
    // Not in the documents of Node: without it, a client that has ended its side gets no reply (`nc -N`).
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on('connection', (socket) => this.#accept(socket));
    server.on('drop', () => this.#countRefused('maximum'));
    server.on('timeout', endStill);
    server.on('request', (req, res) => this.open.get(req.socket)?.take(req, res));
    // `100 Continue` is sent when, and only if, the body is wanted.
    server.on('checkContinue', (req, res) => server.emit('request', req, res));
    server.on('checkExpectation', (req, res) => server.emit('request', req, res));
    server.on('connect', (_, socket: Socket) => this.open.get(socket)?.break(CONNECT));
    server.on('clientError', (error, socket: Socket) => this.#onBadInput(error, socket));
  }

  /**
   * Accepts no new connections, and finishes the requests under way. Those that come meanwhile are handled as late.
   * After `maxMs` it ends what is left, whatever clients send. `leavesQueue`: a successor has the port. Connections that
   * are not accepted yet are left to it, and no request is refused.
   */
  async drain(maxMs: number, { leavesQueue = false } = {}): Promise<void> {
    this.isStopping = true;
    this.refusesLate = !leavesQueue;
    const deadline = setTimeout(() => this.open.forEach((_, socket) => void socket.destroy()), maxMs);
    if (!leavesQueue) {
      // To stop listening resets clients that the kernel has connected: these are accepted first, one a turn, until none comes.
      await nextTurn();
      const began = performance.now();
      const mayAccept = () => performance.now() - began < maxMs / 4;
      for (let before = -1; before < this.#accepted && mayAccept(); await nextTurn()) before = this.#accepted;
    }
    // This close() is net's, and only stops listening. node:http's own would also end idle connections at once, and requests
    // that are on their way would be lost; it has no setting for that.
    const closed = new Promise<unknown>((resolve) => NetServer.prototype.close.call(this.server, resolve));
    await sleep(Math.min(IDLE_GRACE_MS, maxMs));
    for (const connection of this.open.values()) void connection.endWhenIdle();
    await closed;
    clearTimeout(deadline);
  }

  #accept(socket: Socket): void {
    this.#accepted++;
    const name = this.options.addressOf?.(socket) ?? socket;
    const all = this.#ofAddress.get(name) ?? new Set();
    if (all.size >= (this.options.connectionsPerAddress ?? CONNECTIONS_PER_ADDRESS)) {
      this.#countRefused('address');
      // Not at once: whoever connects again without pause would keep node:net accepting, and nobody else would be served.
      setImmediate(() => socket.destroy());
      return void socket.pause();
    }
    const connection = new Connection(socket, this, all);
    this.open.set(socket, connection);
    this.#ofAddress.set(name, all.add(connection));
    setImmediate(balance, all); // not at once: node:http begins to read in the next tick
    const leave = () => {
      all.delete(connection);
      if (all.size === 0) this.#ofAddress.delete(name);
      else balance(all);
    };
    socket.once('close', () => {
      this.open.delete(socket);
      if (connection.sendsTooMuch) setTimeout(leave, FLOOD_REST_MS).unref();
      else leave();
    });
  }

  #countRefused(bound: 'maximum' | 'address'): void {
    this.refused[bound]++;
    this.options.onRefused();
  }

  /** Called for what cannot be parsed, for a client that is gone, and for one that sent nothing or not all in time. */
  #onBadInput(error: Error & { code?: string }, socket: Socket): void {
    if (error.code === 'ECONNRESET' || socket.bytesRead === 0) socket.destroy();
    else this.open.get(socket)?.break(fromParserError(error));
  }
}

/** After a mere close, the kernel would keep what a client does not read, and go on trying to send it. */
function endStill(socket: Socket): void {
  // While our side is being ended, node:net cannot reset the socket, and would never close it.
  if (socket.writableLength === 0 || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
