/** What the server shows outside `/v1`. */
import { jsonReply, type Reply, withBody } from '../http/reply.ts';
import { consolePage } from '../web/console.ts';
import { openapiDocument } from '../web/openapi.ts';
import type { ServeSettings } from './options.ts';
import { PROGRAM } from './version.ts';

const LOOPBACK = /^(127\.|::1$|localhost$)/;

export function addPages(pages: Map<string, () => Reply>, settings: ServeSettings, ownUrl: string): void {
  const { environment, baseUrl, stagingBaseUrl, host, trustProxy, data, store, lab } = settings;
  /** Made when it is first asked for: a start need not wait for what few look at. */
  const add = (path: string, make: () => Reply) => {
    let made: Reply | undefined;
    pages.set(path, () => (made ??= make()));
  };
  const isStaging = environment === 'staging';
  const url = (isStaging ? stagingBaseUrl : baseUrl) ?? ownUrl;
  add('/', () => {
    const isPublic = trustProxy > 0 || !LOOPBACK.test(host);
    const { html, headers } = consolePage({ url, program: PROGRAM, data: store ? undefined : data, isPublic, lab });
    return withBody(200, 'text/html; charset=utf-8', html, headers.flat());
  });
  add('/openapi.json', () => {
    const both = isStaging ? { baseUrl, stagingBaseUrl: url } : { baseUrl: url, stagingBaseUrl };
    return jsonReply(200, JSON.stringify(openapiDocument({ ...both, environment, lab })));
  });
}
