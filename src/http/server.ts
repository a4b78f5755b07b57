/** The HTTP server: node:http with every setting explicit, and a reply of ours wherever it would answer by itself. */
import http, { type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Connection, connectionOf, Outgoing } from './connection.ts';
import { type ConnectionOptions, Connections, MAX_CONNECTIONS } from './connections.ts';
import { ApiError, badRequest, headersTooLarge, MAX_HEADER_BYTES, otherVersion } from './errors.ts';
import { type Incoming, RequestClass } from './messages.ts';
import { ALL_METHODS, MAX_PARSED_HEADERS, uriTooLong } from './request.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** A time-out is noticed this late at most; with node's own 30 s, a slow client could far exceed the time-outs. */
const CHECKING_INTERVAL_MS = 2_000;
/** The longest time until a head that never ends gets its 408. */
export const MAX_HEAD_MS = HEADERS_TIMEOUT_MS + CHECKING_INTERVAL_MS;
export const DEFAULT_KEEP_ALIVE_SECONDS = 5;

interface ServerOptions extends Omit<Partial<ConnectionOptions>, 'begin'> {
  /** Answers a request that node:http could parse. */
  handle(req: Incoming, res: Outgoing): void;
  /** Answers if a request could not be parsed, or did not arrive completely. */
  refuse(connection: Connection, error: ApiError): void;
  /** How long a client may leave a connection unused. */
  keepAliveSeconds?: number;
}

export function createServer(options: ServerOptions): Connections {
  const { handle, refuse, keepAliveSeconds = DEFAULT_KEEP_ALIVE_SECONDS } = options;
  const server = http.createServer({
    IncomingMessage: RequestClass,
    ServerResponse: Outgoing as never, // the type does not see that its requests are of the class above
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    keepAliveTimeout: keepAliveSeconds * 1_000,
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
    requireHostHeader: false, // else node:http would answer by itself; `checkMessage` makes this check
    noDelay: true,
  });
  const begin = (res: Outgoing) => {
    const req = res.req as unknown as Incoming;
    // node:http drops the rest of this packet, but would parse later packets as HTTP: so this reply is the last.
    if (req.headers.upgrade !== undefined || req.method === 'CONNECT') req.from.endWith(res);
    if (req.method === 'CONNECT') req.from.throwAwayRest(); // a client may send on without waiting for the reply
    handle(req, res);
  };
  const { now = () => performance.now(), maxConnections = MAX_CONNECTIONS } = options;
  // The listener that this adds runs before node:http parses any bytes of a connection.
  const connections = new Connections(server, { ...options, begin, now, maxConnections });
  server.timeout = 0; // see Connections
  server.maxRequestsPerSocket = 0;
  server.maxHeadersCount = MAX_PARSED_HEADERS;
  // A client that half-closes still gets its reply. (The types lack this; node:http has always had it.)
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  // Emitted when a connection was unused for `keepAliveTimeout` since its last reply, and never in a request.
  server.on('timeout', (socket) => {
    const { bytesRead } = socket;
    whenRead(() => socket.bytesRead > bytesRead || socket.destroy());
  });
  const onRequest = (req: Incoming, res: Outgoing) => {
    if (req.from.addPending(res)) begin(res);
    else res.cameAt = now();
  };
  // `100 Continue` is sent when, and only if, the body is wanted.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, onRequest);
  const onStopped = (_req: IncomingMessage, socket: Duplex) => connectionOf(socket).endFlood();
  for (const event of ['upgrade', 'connect']) server.on(event, onStopped);
  server.on('clientError', (error: ParserError, socket: Duplex) => {
    const connection = connectionOf(socket);
    const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection.socket.bytesRead === 0;
    if (isUnused) whenRead(() => connection.isUsed || socket.destroy());
    else if (error.code === 'ECONNRESET') socket.destroy();
    else if (connection.refusal !== 'none') connection.ignorePackets();
    else refuseWhenDue(connection, asApiError(error), refuse);
  });
  return connections;
}

/**
 * Calls `end` when all that has come is read. After a pause of the process, a request may still be unread that came
 * before the time of its connection was over.
 */
const whenRead = (end: () => unknown) => void setImmediate(end);

type ParserError = Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number };

/**
 * Refuses input after a request only when that request has its reply, and never in the middle of a reply. What is wrong
 * behind the last reply of a connection is not refused: it must not cost the client that reply.
 */
function refuseWhenDue(connection: Connection, error: ApiError, refuse: ServerOptions['refuse']): void {
  const { socket, pending, isEnding } = connection;
  const [current] = pending;
  connection.refusal = 'due';
  const isLastDecided = isEnding && pending.at(-1)?.isDecided !== false;
  if (isLastDecided || !socket.writable) connection.throwAwayRest();
  else if (current?.req.complete || current?.writableEnded)
    current.once('close', () => refuseWhenDue(connection, error, refuse));
  else if (connection.early?.complete === false || current?.headersSent) socket.destroy();
  else refuse(connection, error);
}

function asApiError(error: ParserError): ApiError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      const read = error.rawPacket?.toString('latin1', 0, error.bytesParsed) ?? '';
      // True if the parser gave up in a request line: the name of a header is not followed by a space.
      const isTarget = /^[A-Z]+ /.test(read.slice(read.lastIndexOf('\n', read.length - 3) + 1));
      return isTarget ? uriTooLong() : headersTooLarge();
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('body_too_large', 'the chunk extensions of the body are too long');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'the request did not arrive in time');
    case 'HPE_INVALID_METHOD':
      return badRequest(`the request does not begin with a method that is served here: ${ALL_METHODS}`);
    case 'HPE_INVALID_VERSION': // also if the line ends without a carriage return
      return badRequest(
        'the first line of a request must end with HTTP/1.0 or HTTP/1.1, a carriage return and a line feed',
      );
    case 'HPE_PAUSED_H2_UPGRADE':
      return otherVersion();
    default:
      return badRequest('this is not a well-formed HTTP request');
  }
}
