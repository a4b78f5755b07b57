/** Content negotiation of gzip (RFC 9110, 12.5.3): a text is compressed once, not for each request. */
import { gzipSync } from 'node:zlib';
import { etagOf } from './conditions.ts';
import { prepared, type Reply, withBody } from './reply.ts';

/** How much an `Accept-Encoding` wants a coding, 0 to 1: by its name, else by `*`. Undefined: it names neither. */
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

/** True if the client prefers gzip. A client without the header may not know it; identity is known to all. */
function prefersGzip(header: string | undefined): boolean {
  const gzip = wanted(header ?? '', 'gzip') ?? 0;
  return gzip > 0 && gzip >= (wanted(header ?? '', 'identity') ?? 0);
}

/** A reply in both forms, chosen by the `Accept-Encoding`. Each has an ETag of its own: they are different bytes. */
export function inBothForms(type: string, text: string, headers: string[] = []): (accept: string | undefined) => Reply {
  const varying = [...headers, 'Vary', 'Accept-Encoding'];
  const tagged = (reply: Reply, etag: string) =>
    prepared({ ...reply, headers: [...reply.headers, 'ETag', etag], etag });
  const plain = tagged(withBody(200, type, text, varying), etagOf(text));
  const bytes = gzipSync(text, { level: 9 }).toString('latin1');
  const length = ['Content-Type', type, 'Content-Length', String(bytes.length), 'Content-Encoding', 'gzip'];
  const packed = tagged({ status: 200, headers: [...length, ...varying], body: bytes }, etagOf(`gzip ${text}`));
  return (accept) => (prefersGzip(accept) ? packed : plain);
}
