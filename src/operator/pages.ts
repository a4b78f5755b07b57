/** What the server shows outside `/v1`. */
import { jsonReply, type Reply, withBody } from '../http/reply.ts';
import { consolePage } from '../web/console.ts';
import { type Addresses, openapiDocument } from '../web/openapi.ts';
import type { ServeSettings } from './options.ts';
import { print } from './output.ts';
import { PROGRAM } from './version.ts';

const STAGING_BASE_URL = 'https://staging.petstore.example/v1';
const BASE_URL = 'https://petstore.example/v1';
const LOCAL_URL = 'http://127.0.0.1:8080/v1';
const LOOPBACK = /^(127\.|::1$|localhost$)/;

type BaseUrls = Pick<ServeSettings, 'baseUrl' | 'stagingBaseUrl'>;

export function addPages(pages: Map<string, () => Reply>, settings: ServeSettings, ownUrl: string): void {
  const addresses = addressesOf(settings, ownUrl, settings.environment);
  /** Made when it is first asked for: a start need not wait for what few look at. */
  const add = (path: string, make: () => Reply) => {
    let made: Reply | undefined;
    pages.set(path, () => (made ??= make()));
  };
  add('/', () => consoleReply(settings, addresses));
  add('/openapi.json', () => jsonReply(200, JSON.stringify(openapiDocument(addresses))));
}

function consoleReply(settings: ServeSettings, { environment, ...addresses }: Addresses): Reply {
  const { host, trustProxy, data, store, lab } = settings;
  const url = environment === 'staging' ? addresses.stagingBaseUrl : addresses.baseUrl;
  const isPublic = trustProxy > 0 || !LOOPBACK.test(host);
  const { html, headers } = consolePage({ url, program: PROGRAM, data: store ? undefined : data, isPublic, lab });
  return withBody(200, 'text/html; charset=utf-8', html, headers.flat());
}

export const printDocument = (urls: BaseUrls): Promise<void> =>
  print(JSON.stringify(openapiDocument(addressesOf(urls, LOCAL_URL, 'production')), null, 2));

/** Where an address is not given, this server's own is that of its environment. */
function addressesOf(urls: BaseUrls, ownUrl: string, environment: ServeSettings['environment']): Addresses {
  const [baseUrl, stagingBaseUrl] = environment === 'staging' ? [BASE_URL, ownUrl] : [ownUrl, STAGING_BASE_URL];
  return { baseUrl: urls.baseUrl ?? baseUrl, stagingBaseUrl: urls.stagingBaseUrl ?? stagingBaseUrl, environment };
}
