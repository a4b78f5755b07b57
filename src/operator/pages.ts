/** The OpenAPI document, as a page of the service. */
import { JSON_UTF_8 } from '../http/reply.ts';
import { pageEndpoint } from '../service/pages.ts';
import type { Endpoint } from '../service/routes.ts';
import { openapiDocument } from '../web/openapi.ts';
import type { ServeSettings } from './options.ts';

/** The address for clients: the given one, or else that where this server listens. */
export function urlOf({ environment, baseUrl, stagingBaseUrl }: ServeSettings, origin: string): string {
  return (environment === 'staging' ? stagingBaseUrl : baseUrl) ?? `${origin}/v1`;
}

/** `url`: as `urlOf` gives it; `additions`: the parts of the extras. */
export function documentPage(settings: ServeSettings, url: string, additions: readonly string[]): Endpoint {
  const { environment, baseUrl, stagingBaseUrl } = settings;
  const own = environment === 'staging' ? { baseUrl, stagingBaseUrl: url } : { baseUrl: url, stagingBaseUrl };
  return pageEndpoint('/openapi.json', JSON_UTF_8, () =>
    JSON.stringify(openapiDocument({ ...own, environment }, additions)),
  );
}
