/** A link of a `Link` header (RFC 8288): its target, then its parameters; and one of these. */
const LINK = /<([^>]*)>((?:\s*;\s*[^;,="\s]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^",;\s]+))?)*)/g;
const PARAMETER = /;\s*([^;,="\s]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",;\s]+)))?/g;

/** The next page, if there is one. The key goes along with every request, so only to where the client was pointed. */
export function nextPage(header: string | undefined, here: URL, base: URL): URL | undefined {
  for (const [, target, parameters] of (header ?? '').matchAll(LINK)) {
    const rel = [...parameters.matchAll(PARAMETER)].find(([, name]) => name.toLowerCase() === 'rel');
    if (!(rel?.[2] ?? rel?.[3] ?? '').toLowerCase().split(/\s+/).includes('next')) continue;
    const next = URL.canParse(target, here.href) ? new URL(target, here) : undefined;
    if (next?.origin === base.origin && next.pathname.startsWith(base.pathname) && next.href !== here.href) return next;
    throw new TypeError('the link to the next page leads out of the service, or to this same page');
  }
  return undefined;
}
