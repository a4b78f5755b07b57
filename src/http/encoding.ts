/** Content negotiation of gzip (RFC 9110, 12.5.3): a text is compressed once, not for each request. */
import { gzipSync } from 'node:zlib';
import { etagOf } from './conditions.ts';
import { prepared, Reply, withBody } from './reply.ts';

/** The weight (0 to 1) of a coding in an `Accept-Encoding`: by its name, else by `*`. Undefined: it names neither. */
function wanted(header: string, coding: string): number | undefined {
  let any: number | undefined;
  for (const element of header.toLowerCase().split(',')) {
    const [, name, q = '1'] =
      /^\s*([\w!#$%&'*+.^`|~-]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/.exec(element) ?? [];
    if (name === coding || (name === `x-${coding}` && coding === 'gzip')) return Number(q);
    if (name === '*') any = Number(q);
  }
  return any;
}

/** True if the client prefers gzip. A client that sends no header may not know gzip; identity is known to all. */
function prefersGzip(header: string | undefined): boolean {
  const gzip = wanted(header ?? '', 'gzip') ?? 0;
  return gzip > 0 && gzip >= (wanted(header ?? '', 'identity') ?? 0);
}

/** Makes both forms of a reply; the function chooses one by `Accept-Encoding`. Each form has its own ETag. */
export function inBothForms(type: string, text: string, headers: string[] = []): (accept: string | undefined) => Reply {
  const varying = [...headers, 'Vary', 'Accept-Encoding'];
  const tagged = ({ headers, body }: Pick<Reply, 'headers' | 'body'>, etag: string) =>
    prepared(new Reply(200, [...headers, 'ETag', etag], body, etag));
  const plain = tagged(withBody(200, type, text, varying), etagOf(text));
  const bytes = gzipSync(text, { level: 9 }).toString('latin1');
  const length = ['Content-Type', type, 'Content-Length', String(bytes.length), 'Content-Encoding', 'gzip'];
  const packed = tagged({ headers: [...length, ...varying], body: bytes }, etagOf(`gzip ${text}`));
  return (accept) => (prefersGzip(accept) ? packed : plain);
}
