/**
 * Conditional requests (RFC 9110, 13). `If-None-Match` saves sending a body that the client has already; `If-Match` and
 * `If-None-Match` keep a write from overwriting a state that its caller has not seen. No resource has a date of
 * modification, so `If-Modified-Since` and `If-Unmodified-Since` are ignored, as the RFC says.
 */
import { hash } from 'node:crypto';
import { excerpt } from '../text.ts';
import { ApiError } from './errors.ts';
import { jsonReply, Reply } from './reply.ts';
import type { Headers } from './request.ts';

/** 132 bits of a SHA-256: nobody finds two contents with one tag. */
const TAG_CHARS = 22;
const TAG = /(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"/g;
/** Elements of a list may be empty. The pattern is unambiguous, so that matching never backtracks for long. */
const LIST = new RegExp(`^[ \\t]*(?:${TAG.source}[ \\t]*)?(?:,[ \\t]*(?:${TAG.source}[ \\t]*)?)*$`);

type Conditions = Pick<Headers, 'if-match' | 'if-none-match'>;

/** The tags as they were sent; `*`: any tag. */
type Tags = '*' | readonly string[];

export const etagOf = (content: string): string => `"${hash('sha256', content, 'base64url').slice(0, TAG_CHARS)}"`;

/** The reply to a write: it carries the ETag of what is now there, but may not be stored. */
export const writtenReply = (status: number, json: string): Reply => jsonReply(status, json, ['ETag', etagOf(json)]);

/** The reply to a GET under the request's conditions: `reply`, or a 304 in its place. Throws 412. */
export function underConditions(headers: Conditions, reply: Reply): Reply {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (match !== undefined && !isNamed(readTags('If-Match', match), reply.etag, 'strongly')) {
    throw failed(`If-Match: ${whyNot(readTags('If-Match', match), reply.etag)}`);
  }
  if (noneMatch === undefined) return reply;
  // For speed: most clients send just the tag that they got, which is then not parsed.
  const isKnown = noneMatch === reply.etag || isNamed(readTags('If-None-Match', noneMatch), reply.etag, 'weakly');
  return isKnown ? unchanged(reply) : reply;
}

/**
 * The conditions of a write, as a function to be called in its transaction with the present ETag (undefined: there is no
 * such resource). That function throws 412 if a condition does not hold; `preconditionOf` itself throws 400 if one cannot
 * be read.
 */
export function preconditionOf(headers: Conditions): (etag: string | undefined) => void {
  const tagsOf = (name: string, text: string | undefined) => (text === undefined ? undefined : readTags(name, text));
  const match = tagsOf('If-Match', headers['if-match']);
  const noneMatch = tagsOf('If-None-Match', headers['if-none-match']);
  return (etag) => {
    if (match !== undefined && !isNamed(match, etag, 'strongly')) throw failed(`If-Match: ${whyNot(match, etag)}`);
    if (noneMatch === undefined || !isNamed(noneMatch, etag, 'weakly')) return;
    const why = noneMatch === '*' ? 'there is something at this path already' : 'it still has one of these ETags';
    throw failed(`If-None-Match: ${why}`);
  };
}

/** Throws if the text is neither `*` nor a list of ETags: a condition that was misread would be worse than none. */
function readTags(name: string, text: string): Tags {
  if (text === '*') return text;
  if (LIST.test(text)) return text.match(TAG) ?? [];
  const must = 'must be * or a list of ETags as they were received, each in double quotes';
  throw new ApiError('bad_request', `${name}: ${must} (got ${excerpt(text)})`);
}

/** Weak comparison ignores the `W/` of a weak tag: proxies that compress make tags weak. */
function isNamed(tags: Tags, etag: string | undefined, how: 'strongly' | 'weakly'): boolean {
  if (etag === undefined) return false;
  return tags === '*' || tags.includes(etag) || (how === 'weakly' && tags.includes(`W/${etag}`));
}

function whyNot(tags: Tags, etag: string | undefined): string {
  if (etag === undefined) return 'there is nothing at this path yet';
  return isNamed(tags, etag, 'weakly') ? 'a weak ETag (W/) never matches here' : 'it has changed; this is not its ETag';
}

const failed = (why: string) => new ApiError('precondition_failed', `${why}: nothing was done`);

/** The 304 in place of a reply: without the body, and without the `Content-` headers, which describe it. */
function unchanged({ headers, etag }: Reply): Reply {
  const kept = headers.filter((_, index) => !headers[index - (index % 2)].startsWith('Content-'));
  return new Reply(304, kept, '', etag);
}
