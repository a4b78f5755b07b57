/** All connections of a server: the bounds that hold for all, the choice of connections to refuse, and the drain. */
import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import { onceAMinute } from '../clock.ts';
import { type Body, Connection, type Outgoing } from './connection.ts';
import { PipelinedBegins, UnwantedReads } from './turns.ts';

/** The maximum, unless the process has fewer descriptors. */
export const MAX_CONNECTIONS = 10_000;
/**
 * The listen backlog: connections that the kernel holds until we accept them. Beyond it the kernel drops a client's
 * packet, and the client asks again only after a second. The backlog is large, for we can accept a crowd, and refuse
 * it, in less than that second.
 */
export const MAX_WAITING_CONNECTIONS = 4_096;
/** The most connections of one address. As for requests without a key, all addresses of an IPv6 /64 are one. */
const MAX_CONNECTIONS_OF_ADDRESS = 2_000;
/** Where `maxConnections` is below `MAX_CONNECTIONS`: the share of it that one address can have. */
const SHARE_OF_ADDRESS = 0.2;
/**
 * When more than this share of the maximum is open, each new connection ends a stranger, a connection that is not
 * trusted, if one has been a stranger for `PRESSURE_MS`. Above `CROWD` that time does not matter.
 */
const PRESSURE = 0.8;
const PRESSURE_MS = 1_000;
const CROWD = 0.9;
/** Beyond one of these a connection ends at its second unanswered request, or once its client reads no replies. */
const MAX_UNANSWERED_IN_ALL = 20_000;
const MAX_UNSENT_BYTES_IN_ALL = 64 * 1024 * 1024;
/** The most memory of all incomplete bodies. Beyond it, the body that began first is given up. */
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;

/** A client that has not read its replies for this long is ended at the next look. */
const UNREAD_REPLY_MS = 30_000;
const LOOK_EVERY_MS = 2_000;
/**
 * When the service stops, connections that seem idle are left open this long: a request may already be on its way, and
 * closing under it would cost its sender the reply. A request in that time gets a refusal, and `Connection: close`.
 */
const IDLE_GRACE_MS = 300;
const DRAIN_POLL_MS = 20;

/** Refused connections, counted by the bound that was reached. */
export interface Refused {
  maximum: number;
  address: number;
  /** Connections ended in favour of newer ones. */
  pressure: number;
  /** Connections for which the system had no descriptor or no memory. */
  system: number;
}

export interface ConnectionOptions {
  begin(res: Outgoing): void;
  now(): number;
  /** The most connections that are open at once. */
  maxConnections: number;
  /** The name under which a socket's address is counted. Absent behind a proxy, whose address all sockets have. */
  addressOf?(socketAddress: string | undefined): string;
  /** Called when connections were refused, with the counts since the start. */
  onRefused?(refused: Refused): void;
  unreadMs?: number;
}

export class Connections {
  readonly server: Server;
  readonly open = new Set<Connection>();
  readonly unwanted = new UnwantedReads();
  readonly pipelined = new PipelinedBegins();
  readonly refused: Refused = { maximum: 0, address: 0, pressure: 0, system: 0 };
  unanswered = 0;
  unsent = 0;
  bodyBytes = 0;
  readonly #options: ConnectionOptions;
  /** Connections that are not trusted, the one that has been so for longest first. */
  readonly #strangers = new Set<Connection>();
  readonly #ofAddress = new Map<string, number>();
  /** The memory of each body, in bytes, the oldest first. */
  readonly #bodies = new Map<Body, number>();
  #accepted = 0;
  /** The sum of all refused connections when the newest notice was given. */
  #reported = 0;
  readonly #mayTell: () => boolean;
  #overdueAt = Number.POSITIVE_INFINITY;

  /**
   * Looks now and then for clients that have stopped reading. `server.timeout` would end them too, but sets a timer
   * anew for every request, which costs 2 % of a request's time.
   */
  constructor(server: Server, options: ConnectionOptions) {
    this.server = server;
    this.#options = options;
    const { maxConnections, unreadMs = UNREAD_REPLY_MS, now } = options;
    server.maxConnections = maxConnections;
    server.on('connection', (socket: Socket) => this.#take(socket));
    server.on('drop', () => this.refused.maximum++);
    server.on('error', () => server.listening && this.refused.system++);
    const everyMs = Math.min(LOOK_EVERY_MS, unreadMs / 2);
    const look = () => {
      const at = now();
      for (const connection of this.open) connection.endIfStuck(at, this.areFull ? everyMs : unreadMs);
      this.#reportRefused();
    };
    this.#mayTell = onceAMinute(now);
    const timer = setInterval(look, everyMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  get areFull(): boolean {
    return this.unanswered > MAX_UNANSWERED_IN_ALL || this.unsent > MAX_UNSENT_BYTES_IN_ALL;
  }

  get isOverdue(): boolean {
    return this.#overdueAt !== Number.POSITIVE_INFINITY && performance.now() >= this.#overdueAt;
  }

  begin(res: Outgoing): void {
    this.#options.begin(res);
  }

  #take(socket: Socket): void {
    const { addressOf, maxConnections, now } = this.#options;
    // Made for a refused socket too: node:http may still call us with it, and `connectionOf` must find one.
    const connection = new Connection(++this.#accepted, socket, this, now());
    const address = addressOf?.(socket.remoteAddress);
    if (address !== undefined && !this.#enter(address, socket)) {
      this.refused.address++;
      return void socket.destroy();
    }
    this.open.add(connection);
    if (this.open.size > CROWD * maxConnections) this.#endStranger(Number.POSITIVE_INFINITY);
    else if (this.open.size > PRESSURE * maxConnections) this.#endStranger(connection.strangerSince - PRESSURE_MS);
    this.#strangers.add(connection);
  }

  /** True if the address may have one more connection, which is then counted. */
  #enter(address: string, socket: Socket): boolean {
    const before = this.#ofAddress.get(address) ?? 0;
    if (before >= Math.min(MAX_CONNECTIONS_OF_ADDRESS, SHARE_OF_ADDRESS * this.#options.maxConnections)) return false;
    this.#ofAddress.set(address, before + 1);
    socket.once('close', () => this.#leave(address));
    return true;
  }

  #leave(address: string): void {
    const left = (this.#ofAddress.get(address) as number) - 1;
    if (left === 0) this.#ofAddress.delete(address);
    else this.#ofAddress.set(address, left);
  }

  /**
   * Ends one of the connections that have been strangers since `since` or before: the one that has been so for longest
   * among those that wait for no reply, or among all if each waits for one.
   */
  #endStranger(since: number): void {
    let ended: Connection | undefined;
    for (const stranger of this.#strangers) {
      if (stranger.strangerSince > since) break;
      ended ??= stranger;
      if (stranger.pending.length > 0) continue;
      ended = stranger;
      break;
    }
    if (ended === undefined) return;
    this.closed(ended);
    this.refused.pressure++;
    ended.socket.resetAndDestroy();
  }

  /**
   * Called when a connection becomes trusted, or is no longer. A refused request costs its key nothing: if a key that
   * is banned, or beyond its limits, made its connections trusted, it could keep all connections of the server.
   */
  trust(connection: Connection, isTrusted: boolean): void {
    connection.isTrusted = isTrusted;
    connection.strangerSince = this.#options.now();
    if (isTrusted) this.#strangers.delete(connection);
    else if (this.open.has(connection)) this.#strangers.add(connection);
  }

  closed(connection: Connection): void {
    this.open.delete(connection);
    this.#strangers.delete(connection);
  }

  /** Counts the memory of a body, which is now `bytes`. Beyond the bound the oldest bodies are given up. */
  hold(body: Body, bytes: number): void {
    this.bodyBytes += bytes - (this.#bodies.get(body) ?? 0);
    this.#bodies.set(body, bytes);
    for (const [oldest] of this.#bodies) {
      if (this.bodyBytes <= MAX_BODY_BYTES_IN_ALL) return;
      oldest.giveUp(); // this calls `letGo`
    }
  }

  letGo(body: Body): void {
    this.bodyBytes -= this.#bodies.get(body) ?? 0;
    this.#bodies.delete(body);
  }

  #reportRefused(): void {
    const { maximum, address, pressure, system } = this.refused;
    const refused = maximum + address + pressure + system;
    if (refused === this.#reported || !this.#mayTell()) return;
    this.#reported = refused;
    this.#options.onRefused?.(this.refused);
  }

  /** Closes idle connections, and calls `refuse` for those with half a head. Leaves those with replies to send. */
  #endIdle(refuse: (connection: Connection) => void): void {
    for (const { socket } of this.open) if (socket.writableEnded) return; // not yet: it lingers, and would be cut off
    this.server.closeIdleConnections();
    for (const connection of this.open) {
      const { socket, pending, isEnding, early, refusal } = connection;
      if (socket.bytesRead === 0)
        socket.destroy(); // node:http does not count a connection as idle before its first request
      else if (pending.length + socket.writableLength > 0 || isEnding || early?.complete === false) continue;
      else if (!socket.destroyed && refusal === 'none') refuse(connection);
    }
  }

  /**
   * Ends the server within `maxMs`: accepts no new connections, and finishes the requests under way. `refuse` answers
   * on a connection where only half a request head has come when `IDLE_GRACE_MS` is over.
   */
  async drain(maxMs: number, refuse: (connection: Connection) => void): Promise<void> {
    const began = performance.now();
    // A flood can keep timers from running, so the deadline is also checked wherever bytes come in.
    this.#overdueAt = began + maxMs;
    for (const connection of this.open) connection.keepWaiting();
    // close() would reset clients that have connected by now. So they are accepted first: one a turn, until none comes.
    await immediate();
    const most = this.#accepted + MAX_WAITING_CONNECTIONS;
    const mayGoOn = () => this.#accepted < most && performance.now() - began < maxMs / 4;
    for (let before = -1; before < this.#accepted && mayGoOn(); await immediate()) before = this.#accepted;
    const poll = setInterval(() => {
      const ms = performance.now() - began;
      if (ms >= maxMs) for (const { socket } of this.open) socket.destroy();
      // A connection becomes idle when its last reply is done, so this is repeated until none is left.
      else if (ms >= IDLE_GRACE_MS) this.#endIdle(refuse);
    }, DRAIN_POLL_MS);
    // node:http's close() ends idle connections at once; net's close() only stops listening.
    await new Promise<unknown>((resolve) => NetServer.prototype.close.call(this.server, resolve));
    clearInterval(poll);
  }
}
