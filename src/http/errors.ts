/** The refusals that reach a client, and the catalogue of their codes. */

export const CATALOGUE = {
  invalid_json: 400,
  invalid_body: 400,
  invalid_parameter: 400,
  bad_request: 400,
  missing_api_key: 401,
  invalid_api_key: 401,
  read_only_key: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  pet_unavailable: 409,
  order_closed: 409,
  gone: 410,
  body_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  expectation_failed: 417,
  idempotency_key_reused: 422,
  rate_limited: 429,
  key_banned: 429,
  headers_too_large: 431,
  internal_error: 500,
  unavailable: 503,
  outcome_unknown: 503,
  storage_full: 507,
} as const;

export type ErrorCode = keyof typeof CATALOGUE;

/** Headers as `writeHead` takes them: name, value, name, value. */
export type HeaderList = readonly string[];

/** A refusal. For speed it is no Error: to record a stack would cost more than to send the reply. */
export class ApiError {
  readonly code: ErrorCode;
  readonly message: string;
  /** Headers of its reply. */
  readonly headers: HeaderList;
  /** True if its reply is the last of the connection. */
  readonly endsConnection: boolean;

  constructor(code: ErrorCode, message: string, headers: HeaderList = [], endsConnection = false) {
    this.code = code;
    this.message = message;
    this.headers = headers;
    this.endsConnection = endsConnection;
  }
}

export const MAX_BODY_BYTES = 65_536;
export const MAX_HEADER_BYTES = 8_192;
export const MAX_HEADER_PAIRS = 100;
export const MAX_TARGET_CHARS = 2_048;

/** A fault in the message itself: nothing in it can be relied on, so the connection ends too. */
export const badRequest = (message: string) => new ApiError('bad_request', message, [], true);

export const OTHER_VERSION = 'only HTTP/1.0 and HTTP/1.1 are supported';

export const notFound = (what: string) => new ApiError('not_found', `there is no such ${what}`);

export const bodyTooLarge = () =>
  new ApiError('body_too_large', `the body may have at most ${MAX_BODY_BYTES} bytes`, [], true);

export const uriTooLong = () =>
  new ApiError('uri_too_long', `the request target may have at most ${MAX_TARGET_CHARS} characters`);

/** One message for several causes: Node 26 reports too many bytes and too many headers alike, in head and trailers. */
export const headersTooLarge = () => {
  const most = `at most ${MAX_HEADER_BYTES} bytes and ${MAX_HEADER_PAIRS} headers`;
  const why = `the head of a request may have ${most}, and so may the trailers after its body`;
  return new ApiError('headers_too_large', why, [], true);
};

export const notNow = (why: string) => new ApiError('unavailable', why, ['Retry-After', '1']);

/** What is wrong with a message that node:http cannot parse. */
const PARSER_FAULTS: Record<string, string> = {
  HPE_INVALID_METHOD: 'the request does not begin with a method that is served here',
  // Also if the line ends without a carriage return.
  HPE_INVALID_VERSION:
    'the first line of a request must end with HTTP/1.0 or HTTP/1.1, a carriage return and a line feed',
  HPE_INVALID_EOF_STATE: 'the request ended early',
  HPE_PAUSED_H2_UPGRADE: OTHER_VERSION,
};

/** What a client gets in place of an error of node's parser, or of its time-outs. */
export function fromParserError(error: Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number }): ApiError {
  const { code = '', rawPacket, bytesParsed } = error;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('request_timeout', 'the request did not arrive in time');
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') {
    return new ApiError('body_too_large', 'the chunk extensions of the body are too long');
  }
  if (code !== 'HPE_HEADER_OVERFLOW')
    return badRequest(PARSER_FAULTS[code] ?? 'this is not a well-formed HTTP request');
  const read = rawPacket?.toString('latin1', 0, bytesParsed) ?? '';
  // The line in which the parser gave up is a request line if a space follows its first word: no header has one there.
  const isTarget = /^[A-Z]+ /.test(read.slice(read.lastIndexOf('\n', read.length - 3) + 1));
  return isTarget ? uriTooLong() : headersTooLarge();
}
