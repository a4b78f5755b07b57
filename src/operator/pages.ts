/** The console and the OpenAPI document, as pages of the service. */
import { asset } from '../assets.ts';
import { JSON_UTF_8 } from '../http/reply.ts';
import { pageEndpoint } from '../service/pages.ts';
import type { Endpoint } from '../service/routes.ts';
import { CONSOLE_HEADERS, consolePage } from '../web/console.ts';
import { openapiDocument } from '../web/openapi.ts';
import { isLoopback } from './listening.ts';
import type { ServeSettings } from './options.ts';
import { PROGRAM } from './version.ts';

/** `ownUrl`: the address of this server, for clients without a given one. */
export function pagesOf(settings: ServeSettings, ownUrl: string): Endpoint[] {
  const { environment, baseUrl, stagingBaseUrl, host, trustProxy, data, store, lab } = settings;
  const isStaging = environment === 'staging';
  const url = (isStaging ? stagingBaseUrl : baseUrl) ?? ownUrl;
  const urls = isStaging ? { baseUrl, stagingBaseUrl: url } : { baseUrl: url, stagingBaseUrl };
  const isPublic = trustProxy > 0 || !isLoopback(host);
  const html = () => consolePage({ url, program: PROGRAM, data: store ? undefined : data, isPublic, lab });
  const json = () =>
    JSON.stringify(openapiDocument({ ...urls, environment }, lab ? [asset('src/lab/openapi.json')] : []));
  return [
    pageEndpoint('/', 'text/html; charset=utf-8', html, CONSOLE_HEADERS),
    pageEndpoint('/openapi.json', JSON_UTF_8, json),
  ];
}
