/**
 * The OpenAPI document, as this server serves it: `openapi.json`, completed. That file has the common parts of replies
 * once: `x-every-reply` and `x-deprecated-reply` have their headers, and a reply with `codes` is an error whose
 * description, schema and examples follow from the codes.
 */
import { asset } from './assets.ts';

interface Addresses {
  /** Both end in `/v1`. Only given addresses are named; if none is given, the default address of a server. */
  baseUrl?: string;
  stagingBaseUrl?: string;
  /** The environment of this server: its address is named first, since tools take the first. */
  environment?: 'production' | 'staging';
  /** Whether the lab is served too. */
  lab?: boolean;
}

type Headers = Record<string, { $ref?: string }>;
type Reply = { $ref?: string; codes?: string[]; description?: string; headers?: Headers; content?: object };
type Operation = { deprecated?: boolean; responses: Record<string, Reply> };

interface OpenApi {
  info: { contact: { url: string } };
  servers: { url: string; description: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    schemas: Record<string, object>;
    headers: Record<string, object>;
    responses: Record<string, Reply>;
    examples: Record<string, { summary: string; value: { status: number } }>;
  };
  'x-every-reply'?: { headers: Headers };
  'x-deprecated-reply'?: { headers: Headers };
}

/** Statuses of faults in the message itself: some are found before its operation is known. */
const BEFORE_THE_OPERATION = ['408', '414', '431', 'default'];

/** The interface description, OpenAPI 3.1, with the addresses of this server in it. */
export function openapiDocument({ baseUrl, stagingBaseUrl, environment = 'production', lab }: Addresses): object {
  const document: OpenApi = JSON.parse(asset('openapi.json'));
  const production = baseUrl === undefined ? [] : [{ url: baseUrl, description: 'Production' }];
  const staging = stagingBaseUrl === undefined ? [] : [{ url: stagingBaseUrl, description: 'Staging' }];
  const given = environment === 'staging' ? [...staging, ...production] : [...production, ...staging];
  if (given.length > 0) document.servers = given;
  document.info.contact.url = `${withoutVersion(document.servers[0].url)}/`;
  if (lab) tellFromTheRoot(document);
  else leaveOutLab(document);
  completeReplies(document);
  return document;
}

const withoutVersion = (url: string) => url.replace(/\/v1$/, '');

/** The lab is outside /v1, so with it all paths begin at the root: no path needs a server of its own. */
function tellFromTheRoot(document: OpenApi): void {
  const [{ url, description }] = document.servers;
  document.servers = [{ url: withoutVersion(url), description: `${description}, with its lab` }];
  const paths = Object.entries(document.paths);
  document.paths = Object.fromEntries(paths.map(([path, item]) => [isOfLab(path) ? path : `/v1${path}`, item]));
}

/** Removes the lab's paths, its tag, and the components whose names begin with `Lab`. */
function leaveOutLab(document: OpenApi): void {
  document.tags = document.tags.filter(({ name }) => name !== 'lab');
  document.paths = Object.fromEntries(Object.entries(document.paths).filter(([path]) => !isOfLab(path)));
  for (const parts of Object.values(document.components)) {
    for (const name of Object.keys(parts)) if (name.startsWith('Lab')) delete parts[name];
  }
  delete document['x-every-reply']?.headers['X-Lab-Clock'];
}

const isOfLab = (path: string) => path === '/lab' || path.startsWith('/lab/');

function completeReplies(document: OpenApi): void {
  const { paths, components } = document;
  const { 'x-every-reply': every, 'x-deprecated-reply': deprecated } = document;
  delete document['x-every-reply'];
  delete document['x-deprecated-reply'];
  for (const [name, reply] of Object.entries(components.responses)) {
    if (reply.codes !== undefined) components.responses[name] = errorReply(components, name, reply);
  }
  const inline: Reply[] = [];
  for (const operation of Object.values(paths).flatMap((item) => Object.values(item))) {
    for (const [status, reply] of Object.entries(operation.responses)) {
      if (operation.deprecated) {
        const shared = components.responses[nameOf(reply.$ref)] ?? reply;
        const isKnown = !BEFORE_THE_OPERATION.includes(status);
        const ending = isKnown ? deprecated?.headers : optional(components.headers, deprecated?.headers);
        operation.responses[status] = { ...shared, headers: { ...shared.headers, ...ending } };
      }
      if (operation.responses[status].$ref === undefined) inline.push(operation.responses[status]);
    }
  }
  const text = JSON.stringify(paths);
  for (const name of Object.keys(components.responses)) {
    if (!text.includes(`/responses/${name}"`)) delete components.responses[name]; // given in its operation alone
  }
  for (const reply of [...Object.values(components.responses), ...inline]) {
    reply.headers = { ...every?.headers, ...reply.headers };
  }
}

const optional = (headers: Headers, named: Headers = {}) =>
  Object.fromEntries(
    Object.entries(named).map(([name, { $ref }]) => [name, { ...headers[nameOf($ref)], required: false }]),
  );

const nameOf = (ref = '') => ref.split('/').at(-1) as string;

/** The errors of one status, with a schema of their own: generators make a plain type of it. */
function errorReply({ schemas, examples }: OpenApi['components'], name: string, { codes = [], headers }: Reply): Reply {
  const { status } = examples[codes[0]].value;
  const said = codes.map((code) => `\`${code}\`: ${examples[code].summary}`);
  schemas[`${name}Error`] = {
    type: 'object',
    description: said.join('\n\n'),
    required: ['code', 'message', 'status'],
    properties: {
      code: { type: 'string', enum: codes, description: 'The error code, for programs.' },
      message: { type: 'string', minLength: 1, description: 'The error and its remedy, for people.' },
      status: { type: 'integer', enum: [status], description: 'The HTTP status of the reply.' },
    },
  };
  const schema = { $ref: `#/components/schemas/${name}Error` };
  const shown = codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
  return {
    description: said.join('\n\n'),
    headers,
    content: { 'application/json': { schema, examples: Object.fromEntries(shown) } },
  };
}
