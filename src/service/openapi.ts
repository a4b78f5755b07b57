/** The OpenAPI document as this server serves it: `openapi.json`, with the version, the addresses, and parts of extras. */
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

type Named<T> = Record<string, T>;
/** A reply, or a reference to one among the components. */
type Reply = { $ref: string } | { $ref?: undefined; headers?: Named<object> };

/** What is read or changed of a document here. */
interface Document {
  info: { version: string; contact: { url: string } };
  servers: { url: string; description: string }[];
  tags: object[];
  paths: Named<Named<{ responses: Named<Reply> }>>;
  components: Named<Named<object>> & { responses: Named<Reply> };
}

/** The document of an extra, whose paths are outside `/v1`. */
type Part = Omit<Document, 'components'> & {
  components: Named<Named<object>>;
  /** Headers which the extra adds to the replies of all operations. */
  'x-headers-of-every-reply'?: Named<object>;
};

/** The interface description, OpenAPI 3.1. `parts`: the documents of extras, as JSON. */
export function openapiDocument(settings: Settings, parts: readonly string[] = []): object {
  const { version, baseUrl, stagingBaseUrl, environment = 'production' } = settings;
  const document: Document = JSON.parse(asset('src/service/openapi.json'));
  const production = baseUrl === undefined ? [] : [{ url: baseUrl, description: 'Production' }];
  const staging = stagingBaseUrl === undefined ? [] : [{ url: stagingBaseUrl, description: 'Staging' }];
  const given = environment === 'staging' ? [...staging, ...production] : [...production, ...staging];
  if (given.length > 0) document.servers = given;
  document.info.version = version;
  document.info.contact.url = `${withoutVersion(document.servers[0].url)}/`;
  if (parts.length > 0) moveToRoot(document);
  for (const part of parts) add(document, JSON.parse(part.replaceAll(REFERENCE_TO_SERVICE, '"#/')));
  return document;
}

/** The document of an extra refers to the service's by its file, so that tools can read it as it lies there. */
const REFERENCE_TO_SERVICE = /"[^"#]+\/openapi\.json#\//g;

const withoutVersion = (url: string) => url.replace(/\/v1$/, '');

/** All paths then begin at the root, so that none outside `/v1` needs a server of its own. */
function moveToRoot(document: Document): void {
  const [{ url, description }] = document.servers;
  document.servers = [{ url: withoutVersion(url), description }];
  const paths = Object.entries(document.paths);
  document.paths = Object.fromEntries(paths.map(([path, item]) => [`/v1${path}`, item]));
}

function add(document: Document, part: Part): void {
  document.tags.push(...part.tags);
  Object.assign(document.paths, part.paths);
  const { components } = document;
  for (const [kind, named] of Object.entries(part.components)) components[kind] = { ...named, ...components[kind] };
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  for (const responses of [components.responses, ...operations.map((operation) => operation.responses)]) {
    for (const reply of Object.values(responses)) {
      if (reply.$ref === undefined) reply.headers = { ...reply.headers, ...part['x-headers-of-every-reply'] };
    }
  }
}
