/** node:http with every setting said, and a reply of ours in each place where it would answer by itself. */
import http, { type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Connection, Connections, connectionOf, Outgoing } from './connection.ts';
import { ApiError, badRequest } from './errors.ts';
import { type Incoming, Message } from './messages.ts';
import { KEEP_ALIVE_MS } from './reply.ts';
import { MAX_TARGET_CHARS, uriTooLong } from './request.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How late a time-out may be found out; node's own 30 s would let a dripping client outlive the limits by far. */
const CHECKING_INTERVAL_MS = 2_000;
const MAX_HEADER_BYTES = 8_192;
const MAX_CONNECTIONS = 10_000;

/** `handle` answers a request that node:http could read, `refuse` a connection on which was none, or half of one. */
export function createServer(handle: (req: Incoming, res: Outgoing) => void, refuse: Refuse): Connections {
  const server = http.createServer({
    IncomingMessage: Message,
    ServerResponse: Outgoing as never, // the type asks for one whose request is the class above: node:http sees to that
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
    requireHostHeader: false, // node would answer by itself; checkMessage does
    noDelay: true,
  });
  const connections = new Connections(server, () => performance.now()); // before node:http looks at a connection
  server.timeout = 0; // see Connections
  server.maxRequestsPerSocket = 0;
  server.maxConnections = MAX_CONNECTIONS;
  // A client that has said all it has to say still gets its reply. (Not in the types, but in node:http since ever.)
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  const begin = (req: Incoming, res: Outgoing) => {
    // What follows in the same packet node:http drops as another protocol's; what comes later it would read as HTTP.
    if (req.headers.upgrade !== undefined || req.method === 'CONNECT') req.from.endWith(res);
    if (req.method === 'CONNECT') req.from.endGently(); // more may follow at once
    handle(req, res);
  };
  const onRequest = (req: Incoming, res: Outgoing) => {
    const { from } = req;
    from.addPending(res);
    if (from.pending.length === 1) return begin(req, res);
    // Behind another it waits until what came with it is parsed: were that too much, a reply would be in vain.
    process.nextTick(() => {
      if (!from.isEnding && !from.socket.destroyed) begin(req, res);
    });
  };
  // `100 Continue` is sent when, and only if, the body is wanted.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, onRequest);
  server.on('upgrade', (_req: IncomingMessage, socket: Duplex) => connectionOf(socket).endFlood());
  server.on('clientError', (error: ParserError, socket: Duplex) => {
    const connection = connectionOf(socket);
    const isUnused = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection.socket.bytesRead === 0;
    if (error.code === 'ECONNRESET' || isUnused) socket.destroy();
    else if (connection.refusal !== 'none') connection.ignorePacket();
    else refuseWhenDue(connection, asApiError(error), refuse);
  });
  return connections;
}

type ParserError = Error & { code?: string; rawPacket?: Buffer };
type Refuse = (connection: Connection, error: ApiError) => void;

/** A fault in what follows a request must not cost that request its reply: wait for it, and never write into one. */
function refuseWhenDue(connection: Connection, error: ApiError, refuse: Refuse): void {
  const { socket, pending } = connection;
  const [current] = pending;
  connection.refusal = 'due';
  if (!socket.writable) socket.destroy();
  else if (current?.req.complete || current?.writableEnded) {
    current.once('close', () => refuseWhenDue(connection, error, refuse));
  } else if (connection.early?.complete === false || current?.headersSent) socket.destroy();
  else refuse(connection, error);
}

function asApiError(error: ParserError): ApiError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      const firstLine = error.rawPacket?.indexOf('\r\n') ?? 0;
      return firstLine === -1 || firstLine > MAX_TARGET_CHARS + 20
        ? uriTooLong()
        : new ApiError('headers_too_large', `all headers together may have at most ${MAX_HEADER_BYTES} bytes`);
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('body_too_large', 'the chunk extensions of the body are too long');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('request_timeout', 'the request did not arrive in time');
    default:
      return badRequest('this is not a well-formed HTTP request');
  }
}
