/** What the server shows outside `/v1`. */
import type { ServeSettings } from '../config.ts';
import { jsonReply, type Reply, withBody } from '../http/reply.ts';
import { consolePage } from '../web/console.ts';
import { openapiDocument } from '../web/openapi.ts';
import { print } from './output.ts';

const STAGING_BASE_URL = 'https://staging.petstore.example/v1';
const BASE_URL = 'http://127.0.0.1:8080/v1';

type BaseUrls = Pick<ServeSettings, 'baseUrl' | 'stagingBaseUrl'>;

export function addPages(pages: Map<string, Reply>, urls: BaseUrls, ownUrl: string): void {
  const { html, headers } = consolePage();
  pages.set('/', withBody(200, 'text/html; charset=utf-8', html, headers.flat()));
  pages.set('/openapi.json', jsonReply(200, JSON.stringify(documentFor(urls, ownUrl))));
}

export async function openapi(urls: BaseUrls): Promise<void> {
  print(JSON.stringify(documentFor(urls, BASE_URL), null, 2));
}

function documentFor({ baseUrl, stagingBaseUrl }: BaseUrls, ownUrl: string): object {
  return openapiDocument({ baseUrl: baseUrl ?? ownUrl, stagingBaseUrl: stagingBaseUrl ?? STAGING_BASE_URL });
}
