/**
 * The one class of errors that reach a client, and the catalogue of their codes. A step that refuses a request throws
 * such an error, or one that `api-errors.ts` translates into it; `app.ts` catches both.
 */
export const CATALOGUE = {
  invalid_json: 400,
  invalid_body: 400,
  invalid_parameter: 400,
  bad_request: 400,
  missing_api_key: 401,
  invalid_api_key: 401,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  pet_unavailable: 409,
  order_closed: 409,
  idempotency_in_flight: 409,
  gone: 410,
  precondition_failed: 412,
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

export class ApiError extends Error {
  readonly code: ErrorCode;
  /** Headers that belong to this error, as a flat list: name, value, name, value. */
  readonly headers: string[];

  constructor(code: ErrorCode, message: string, headers: string[] = []) {
    super(message);
    this.code = code;
    this.headers = headers;
  }
}

export function nothingThere(): ApiError {
  return new ApiError('not_found', 'there is nothing at this path');
}

export function methodNotAllowed(allow: string): ApiError {
  return new ApiError('method_not_allowed', `this path takes: ${allow}`, ['Allow', allow]);
}

export const MAX_BODY_BYTES = 65_536;
/**
 * The most chunks or packets of one body. A valid body has fewer bytes, unless it has needless ones (white space, zeros
 * of a number): it may come byte by byte.
 */
export const MAX_BODY_PIECES = 4_096;

export const MAX_HEADER_BYTES = 8_192;
export const MAX_HEADER_PAIRS = 100;

/** A fault in the message itself: nothing in it can be relied on, so the connection ends too. */
export function badRequest(message: string): ApiError {
  return new ApiError('bad_request', message, ['Connection', 'close']);
}

export function otherVersion(): ApiError {
  return badRequest('only HTTP/1.0 and HTTP/1.1 are supported');
}

export function bodyTooLarge(): ApiError {
  return new ApiError('body_too_large', `the body may have at most ${MAX_BODY_BYTES} bytes`);
}

export function bodyInTooManyPieces(): ApiError {
  return new ApiError('body_too_large', `the body may come in at most ${MAX_BODY_PIECES} pieces`);
}

/**
 * One message for several causes: Node 26 reports too many bytes and too many headers alike, in head and trailers.
 */
export function headersTooLarge(): ApiError {
  const most = `at most ${MAX_HEADER_BYTES} bytes and ${MAX_HEADER_PAIRS} headers`;
  const why = `the head of a request may have ${most}, and so may the trailers after its body`;
  return new ApiError('headers_too_large', why, ['Connection', 'close']);
}
