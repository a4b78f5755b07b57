/** What the server shows outside `/v1`. */
import type { ServeSettings } from '../config.ts';
import { jsonReply, type Reply, withBody } from '../http/reply.ts';
import { consolePage } from '../web/console.ts';
import { openapiDocument } from '../web/openapi.ts';
import { print } from './output.ts';

const STAGING_BASE_URL = 'https://staging.petstore.example/v1';
const BASE_URL = 'http://127.0.0.1:8080/v1';

type BaseUrls = Pick<ServeSettings, 'baseUrl' | 'stagingBaseUrl'>;

export function addPages(pages: Map<string, () => Reply>, urls: BaseUrls, ownUrl: string): void {
  pages.set('/', madeOnce(console));
  const document = () => jsonReply(200, JSON.stringify(documentFor(urls, ownUrl)));
  pages.set('/openapi.json', madeOnce(document));
}

function console(): Reply {
  const { html, headers } = consolePage();
  return withBody(200, 'text/html; charset=utf-8', html, headers.flat());
}

/** When it is first asked for: a start need not wait for what few look at. */
function madeOnce(make: () => Reply): () => Reply {
  let made: Reply | undefined;
  return () => (made ??= make());
}

export async function openapi(urls: BaseUrls): Promise<void> {
  await print(JSON.stringify(documentFor(urls, BASE_URL), null, 2));
}

function documentFor({ baseUrl, stagingBaseUrl }: BaseUrls, ownUrl: string): object {
  return openapiDocument({ baseUrl: baseUrl ?? ownUrl, stagingBaseUrl: stagingBaseUrl ?? STAGING_BASE_URL });
}
