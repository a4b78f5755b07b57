/** The OpenAPI document as this server serves it: `openapi.json`, with the version and the addresses put in. */
import { asset } from '../assets.ts';

interface Settings {
  /** The version of the program. */
  version: string;
  /** Both end in `/v1`. Only given addresses are named; if none is given, the default address of a server. */
  baseUrl?: string;
  stagingBaseUrl?: string;
  /** The environment of this server: its address is named first, since tools take the first. */
  environment?: 'production' | 'staging';
}

/** What is changed of the document here. */
interface Document {
  info: { version: string; contact: { url: string } };
  servers: { url: string; description: string }[];
}

/** The interface description, OpenAPI 3.1. */
export function openapiDocument({ version, baseUrl, stagingBaseUrl, environment = 'production' }: Settings): object {
  const document: Document = JSON.parse(asset('src/service/openapi.json'));
  const production = baseUrl === undefined ? [] : [{ url: baseUrl, description: 'Production' }];
  const staging = stagingBaseUrl === undefined ? [] : [{ url: stagingBaseUrl, description: 'Staging' }];
  const given = environment === 'staging' ? [...staging, ...production] : [...production, ...staging];
  if (given.length > 0) document.servers = given;
  document.info.version = version;
  document.info.contact.url = document.servers[0].url.replace(/v1$/, '');
  return document;
}
