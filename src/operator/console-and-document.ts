/** The console page and the OpenAPI document, as pages of the server. */
import { inBothForms } from '../http/encoding.ts';
import { JSON_UTF_8 } from '../http/reply.ts';
import type { Page } from '../pages.ts';
import { consolePage } from '../web/console.ts';
import { openapiDocument } from '../web/openapi.ts';
import type { ServeSettings } from './options.ts';
import { isLoopback } from './sockets.ts';
import { PROGRAM } from './version.ts';

export function addPages(pages: Map<string, Page>, settings: ServeSettings, ownUrl: string): void {
  const { environment, baseUrl, stagingBaseUrl, host, trustProxy, data, store, lab } = settings;
  /** Made at the first request, so that the start of the server does not wait for pages that few people open. */
  const add = (path: string, make: () => Page) => {
    let made: Page | undefined;
    pages.set(path, (accept) => (made ??= make())(accept));
  };
  const isStaging = environment === 'staging';
  const url = (isStaging ? stagingBaseUrl : baseUrl) ?? ownUrl;
  add('/', () => {
    const isPublic = trustProxy > 0 || !isLoopback(host);
    const { html, headers } = consolePage({ url, program: PROGRAM, data: store ? undefined : data, isPublic, lab });
    return inBothForms('text/html; charset=utf-8', html, headers.flat());
  });
  add('/openapi.json', () => {
    const both = isStaging ? { baseUrl, stagingBaseUrl: url } : { baseUrl: url, stagingBaseUrl };
    return inBothForms(JSON_UTF_8, JSON.stringify(openapiDocument({ ...both, environment, lab })));
  });
}
