/**
 * The HTTP server: node:http with every setting explicit, a reply of ours wherever it would answer by itself, the bounds
 * on connections, and the drain at the end.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Clock, onceAMinute } from '../clock.ts';
import { Connection } from './connection.ts';
import { connectRefusal } from './edges.ts';
import { type ApiError, fromParserError, MAX_HEADER_BYTES, MAX_HEADER_PAIRS } from './errors.ts';
import { Request } from './request.ts';

const MAX_CONNECTIONS = 10_000;
/** The share of them that one address can have. */
const SHARE_OF_ADDRESS = 0.2;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** A time-out is noticed this late at most; with node's own 30 s, a slow client could far exceed the time-outs. */
const CHECKING_INTERVAL_MS = 2_000;
const LOOK_EVERY_MS = 1_000;
/**
 * When the service stops, connections that seem idle stay open this long: a request may be on its way, and closing under
 * it would cost its sender the reply. A request in that time gets a refusal.
 */
const IDLE_GRACE_MS = 300;
const DRAIN_POLL_MS = 20;

/** Connections that were refused since the start, by the bound that they met. */
export interface Refused {
  maximum: number;
  address: number;
}

interface Options {
  readonly clock: Clock;
  readonly keepAliveSeconds: number;
  readonly maxConnections?: number;
  /** The name under which a socket's connections are counted; absent behind a proxy, whose address all have. */
  readonly addressOf?: (socket: Socket) => string;
  /** Answers a request. */
  handle(request: Request): void;
  /** The whole reply to what cannot be parsed or did not come in time. */
  refusal(connection: Connection, error: ApiError): string;
  onRefused(refused: Refused): void;
}

export interface DrainOptions {
  /** True: a successor has the port. Connections that are not accepted yet are left to it, and none is refused. */
  readonly leavesQueue?: boolean;
}

export class HttpServer {
  readonly server: Server;
  readonly open = new Map<Socket, Connection>();
  readonly refused: Refused = { maximum: 0, address: 0 };
  isDraining = false;
  readonly #options: Options;
  readonly #maxOfAddress: number;
  readonly #ofAddress = new Map<string, number>();
  #accepted = 0;
  #servesLate = false;

  constructor(options: Options) {
    const { maxConnections = MAX_CONNECTIONS } = options;
    this.#options = options;
    this.#maxOfAddress = Math.ceil(SHARE_OF_ADDRESS * maxConnections);
    const settings = {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECKING_INTERVAL_MS,
      keepAliveTimeout: 0, // for speed: `#watch` ends unused connections; node:http would set two timers for each request
      maxHeaderSize: MAX_HEADER_BYTES,
      insecureHTTPParser: false,
      requireHostHeader: false, // else node:http would answer by itself; `checkMessage` makes this check
      noDelay: true,
      optimizeEmptyRequests: true, // for speed: a request without a body is no stream; Node 20 does not know this
    };
    const server = createServer(settings);
    this.server = server;
    server.maxConnections = maxConnections;
    server.maxRequestsPerSocket = 0;
    server.maxHeadersCount = MAX_HEADER_PAIRS + 28; // above our own maximum: a request that is served has lost none
    server.timeout = 0; // `#watch` ends the connections of clients that do not read
    // Not in the documents of Node: without it, a client that has ended its side gets no reply (`nc -N`).
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on('connection', (socket) => this.#accept(socket));
    server.on('drop', () => this.refused.maximum++);
    server.on('request', (message, res) => this.#onRequest(message, res));
    // `100 Continue` is sent when, and only if, the body is wanted.
    server.on('checkContinue', (message, res) => server.emit('request', message, res));
    server.on('checkExpectation', (message, res) => server.emit('request', message, res));
    server.on('connect', (_, socket: Socket) => this.#refuse(this.open.get(socket), connectRefusal()));
    server.on('clientError', (error, socket: Socket) => this.#onBadInput(error, socket));
    this.#watch();
  }

  /**
   * Accepts no new connections, and finishes the requests under way. Those that come meanwhile are handled as late.
   * After `maxMs` it ends what is left, whatever clients send.
   */
  async drain(maxMs: number, { leavesQueue = false }: DrainOptions = {}): Promise<void> {
    this.isDraining = true;
    this.#servesLate = leavesQueue;
    const began = performance.now();
    if (!leavesQueue) {
      // To stop listening resets clients that the kernel has connected: these are accepted first, one a turn, until none comes.
      await nextTurn();
      const mayAccept = () => performance.now() - began < maxMs / 4;
      for (let before = -1; before < this.#accepted && mayAccept(); await nextTurn()) before = this.#accepted;
    }
    const poll = setInterval(() => {
      const ms = performance.now() - began;
      for (const connection of this.open.values()) {
        if (ms >= maxMs || (ms >= IDLE_GRACE_MS && connection.isIdle)) connection.socket.destroy();
      }
    }, DRAIN_POLL_MS);
    // This close() is net's, and only stops listening. node:http's own would also end idle connections at once, and requests
    // that are on their way would be lost; it has no setting for that.
    await new Promise<unknown>((resolve) => NetServer.prototype.close.call(this.server, resolve));
    clearInterval(poll);
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, this);
    this.#accepted++;
    const address = this.#options.addressOf?.(socket);
    if (address !== undefined) {
      const count = (this.#ofAddress.get(address) ?? 0) + 1;
      if (count > this.#maxOfAddress) {
        this.refused.address++;
        return void socket.destroy();
      }
      this.#ofAddress.set(address, count);
    }
    this.open.set(socket, connection);
    socket.once('close', () => {
      this.open.delete(socket);
      if (address === undefined) return;
      const left = (this.#ofAddress.get(address) as number) - 1;
      if (left === 0) this.#ofAddress.delete(address);
      else this.#ofAddress.set(address, left);
    });
  }

  #onRequest(message: IncomingMessage, res: ServerResponse): void {
    const connection = this.open.get(message.socket);
    if (connection?.takesMore() !== true) return;
    const isLate = this.isDraining && !this.#servesLate;
    const request = new Request(message, res, connection, this.#options.clock.now(), isLate);
    connection.add(request, () => this.#options.handle(request));
  }

  /** Called for what cannot be parsed, for a client that is gone, and for a request that did not come in time. */
  #onBadInput(error: Error & { code?: string }, socket: Socket): void {
    const connection = this.open.get(socket);
    // The last reply was written in the middle of the packet that cannot be read further: it is on its way.
    if (connection?.state === 'over' && error.code !== 'ECONNRESET') return;
    if (error.code === 'ECONNRESET' || !socket.writable || connection === undefined) return void socket.destroy();
    if (socket.bytesRead === 0) {
      // No byte came in time: there is nothing to answer. After a pause of the process it may be there, but not read yet.
      return void setImmediate(() => socket.bytesRead === 0 && socket.destroy());
    }
    this.#refuse(connection, fromParserError(error));
  }

  #refuse(connection: Connection | undefined, why: ApiError): void {
    connection?.break(why, () => this.#options.refusal(connection, why));
  }

  /** Looks every second for unused connections and for clients that have stopped reading, and reports refused ones. */
  #watch(): void {
    const keepAliveMs = this.#options.keepAliveSeconds * 1_000;
    const mayReport = onceAMinute(() => this.#options.clock.now());
    let reported = 0;
    const timer = setInterval(() => {
      const now = performance.now();
      for (const connection of this.open.values()) {
        connection.endIfStuck(now);
        connection.endIfUnused(now, keepAliveMs);
      }
      const { maximum, address } = this.refused;
      if (maximum + address === reported || !mayReport()) return;
      reported = maximum + address;
      this.#options.onRefused(this.refused);
    }, LOOK_EVERY_MS).unref();
    this.server.once('close', () => clearInterval(timer));
  }
}
