/** The OpenAPI document, as this server serves it. */
import { asset } from './assets.ts';

interface Addresses {
  /** Both end in `/v1`. Where one is not given, the document's own stands. */
  baseUrl?: string;
  stagingBaseUrl?: string;
  /** Which of them this server is; named first, since tools take the first. */
  environment?: 'production' | 'staging';
}

interface OpenApi {
  servers: { url: string; description: string }[];
  paths: Record<string, { servers?: { url: string; description: string }[] }>;
}

/** The interface description, OpenAPI 3.1: `openapi.json` with the addresses of this server in it. */
export function openapiDocument({ baseUrl, stagingBaseUrl, environment = 'production' }: Addresses): object {
  const document: OpenApi = JSON.parse(asset('openapi.json'));
  const [production, staging] = document.servers;
  production.url = baseUrl ?? production.url;
  staging.url = stagingBaseUrl ?? staging.url;
  if (environment === 'staging') document.servers.reverse();
  // The lab stands beside /v1, and only on staging.
  for (const { servers } of Object.values(document.paths)) {
    for (const server of servers ?? []) server.url = staging.url.replace(/\/v1$/, '');
  }
  return document;
}
