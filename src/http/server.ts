/** node:http with every setting said, and a reply of ours in each place where it would answer by itself. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isWanted } from './ending.ts';
import { ApiError } from './errors.ts';
import { hasReply } from './reply.ts';
import { badRequest, MAX_TARGET_CHARS } from './request.ts';
import { endUnreadReplies } from './unread.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How late a time-out may be found out; node's own 30 s would let a dripping client outlive the limits by far. */
const CHECKING_INTERVAL_MS = 2_000;
const KEEP_ALIVE_MS = 5_000;
const MAX_HEADER_BYTES = 8_192;
const MAX_CONNECTIONS = 10_000;

const ALL_METHODS = 'GET, HEAD, POST, PUT, PATCH, OPTIONS';

interface Answers {
  /** Answers a request that node:http could read. */
  handle(req: IncomingMessage, res: ServerResponse): void;
  /** Answers on a connection whose request never became one. */
  refuse(socket: Socket, error: ApiError): void;
}

export function createServer(answers: Answers): http.Server {
  const server = http.createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    insecureHTTPParser: false,
    requireHostHeader: false, // node would answer by itself; checkMessage does
    noDelay: true,
  });
  server.timeout = 0; // see endUnreadReplies
  endUnreadReplies(server, () => performance.now());
  server.maxRequestsPerSocket = 0;
  server.maxConnections = MAX_CONNECTIONS;
  // A client that has said all it has to say still gets its reply. (Not in the types, but in node:http since ever.)
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  server.on('connection', (socket) => void socket.remoteAddress); // keeps it: a client that is gone can be told by it
  const handle = (req: IncomingMessage, res: ServerResponse) => {
    if (isWanted(req, res)) answers.handle(req, res);
  };
  server.on('request', handle);
  server.on('checkContinue', handle); // `100 Continue` is sent when, and only if, the body is wanted
  server.on('checkExpectation', handle);
  const refusing = new WeakSet<Socket>();
  const refuse = (socket: AnsweringSocket, error: ApiError) => {
    if (refusing.has(socket)) return; // node:http tells of a fault again with every further packet
    refusing.add(socket);
    refuseWhenDue(socket, error, answers);
  };
  server.on('connect', (_req: IncomingMessage, socket: Duplex) => {
    const refusal = new ApiError('method_not_allowed', 'CONNECT is not served here', ['Allow', ALL_METHODS]);
    socket.on('error', () => {}); // node:http has stopped listening: a reset would end the process
    refuse(socket as AnsweringSocket, refusal);
  });
  server.on('clientError', (error: ParserError, socket: Duplex) => {
    if (error.code === 'ECONNRESET') socket.destroy();
    else refuse(socket as AnsweringSocket, asApiError(error));
  });
  return server;
}

interface ParserError extends Error {
  code?: string;
  rawPacket?: Buffer;
}

/** node:http's own note of the response that has the socket now; its default clientError handling reads it too. */
interface AnsweringSocket extends Socket {
  _httpMessage?: ServerResponse | null;
}

/** A fault in what follows a request must not cost that request its reply: wait for it, and never write into one. */
function refuseWhenDue(socket: AnsweringSocket, error: ApiError, answers: Answers): void {
  const current = socket._httpMessage;
  if (!socket.writable) socket.destroy();
  else if (current?.req.complete || current?.writableEnded) {
    current.once('close', () => refuseWhenDue(socket, error, answers));
  } else if (hasReply(socket) || current?.headersSent) socket.destroy();
  else answers.refuse(socket, error);
}

function asApiError(error: ParserError): ApiError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      const firstLine = error.rawPacket?.indexOf('\r\n') ?? 0;
      return firstLine === -1 || firstLine > MAX_TARGET_CHARS + 20
        ? new ApiError('uri_too_long', `the request target may have at most ${MAX_TARGET_CHARS} characters`)
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
