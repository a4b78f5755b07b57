/**
 * The OpenAPI document, as this server serves it: `openapi.json`, written out. That file says once what many parts
 * share, in a shorthand: `#schemas/Pet` is a reference; `"required": "all"` names all properties; a reply or a body with
 * a `schema` is JSON; `parameters` and `errors` of an operation are lists of names, of which some stand for several.
 */

import { asset } from '../assets.ts';
import { CATALOGUE, type ErrorCode } from '../http/errors.ts';

interface Addresses {
  /** Both end in `/v1`. Only given addresses are named; if none is given, the default address of a server. */
  baseUrl?: string;
  stagingBaseUrl?: string;
  /** The environment of this server: its address is named first, since tools take the first. */
  environment?: 'production' | 'staging';
}

// biome-ignore lint/suspicious/noExplicitAny: the document is held to its meta-schema by the tests
type Part = Record<string, any>;

/** The errors that operations of a kind have in common, by the names of their replies. */
const ERRORS: Record<string, string> = {
  shop: 'Unauthorized RequestTimeout UriTooLong ExpectationFailed TooManyRequests HeadersTooLarge Internal OtherError',
  read: 'BadRequest Unavailable',
  tagged: 'NotModified PreconditionFailed',
  write: 'BadBody BodyTooLarge UnsupportedMediaType WriteFailed',
};
const OTHER_STATUSES: Record<string, number | string> = { NotModified: 304, OtherError: 'default' };
/** The value of `x-pagination`: how a machine follows a list. */
const PAGES = { limitParameter: 'limit', cursorParameter: 'after', cursorField: 'id', nextHeader: 'Link' };
/** Statuses of faults in the message itself: some are found before its operation is known. */
const BEFORE_THE_OPERATION = ['408', '414', '431', 'default'];

/**
 * The interface description, OpenAPI 3.1, with the addresses of this server in it. `additions`: parts of the same form for
 * what is served outside `/v1`, written as JSON.
 */
export function openapiDocument(addresses: Addresses, additions: readonly string[] = []): object {
  const { baseUrl, stagingBaseUrl, environment = 'production' } = addresses;
  const { 'x-every-reply': every, 'x-deprecated-reply': ending, ...document } = parsed(asset('src/web/openapi.json'));
  const production = baseUrl === undefined ? [] : [{ url: baseUrl, description: 'Production' }];
  const staging = stagingBaseUrl === undefined ? [] : [{ url: stagingBaseUrl, description: 'Staging' }];
  const given = environment === 'staging' ? [...staging, ...production] : [...production, ...staging];
  if (given.length > 0) document.servers = given;
  document.info.contact.url = `${withoutVersion(document.servers[0].url)}/`;
  if (additions.length > 0) moveToRoot(document);
  for (const { 'x-every-reply': more, ...addition } of additions.map(parsed)) {
    Object.assign(every.headers, more?.headers);
    add(document, addition);
  }
  completeErrors(document.components);
  for (const item of Object.values<Part>(document.paths)) {
    for (const [method, operation] of Object.entries<Part>(item)) item[method] = completed(operation, document, ending);
  }
  const text = JSON.stringify(document.paths);
  const { responses } = document.components;
  for (const name of Object.keys(responses)) {
    if (!text.includes(`/responses/${name}"`)) delete responses[name]; // given in its operation alone
  }
  const operations = Object.values<Part>(document.paths).flatMap((item) => Object.values<Part>(item));
  const replies = [responses, ...operations.map((operation) => operation.responses)];
  for (const reply of replies.flatMap((named) => Object.values<Part>(named))) {
    if (reply.$ref === undefined) reply.headers = { ...every.headers, ...reply.headers };
  }
  return document;
}

function parsed(json: string): Part {
  return JSON.parse(json, (_, value) => {
    if (typeof value === 'string') return /^#\w+\/\w+$/.test(value) ? refTo(value.slice(1)) : value;
    return value?.required === 'all' ? { ...value, required: Object.keys(value.properties) } : value;
  });
}

const refTo = (component: string) => ({ $ref: `#/components/${component}` });

const withoutVersion = (url: string) => url.replace(/\/v1$/, '');

/** All paths then begin at the root, so that none outside `/v1` needs a server of its own. */
function moveToRoot(document: Part): void {
  const [{ url, description }] = document.servers;
  document.servers = [{ url: withoutVersion(url), description }];
  const paths = Object.entries(document.paths);
  document.paths = Object.fromEntries(paths.map(([path, item]) => [`/v1${path}`, item]));
}

/** Adds a part to the document: lists grow, and objects get more members. */
function add(whole: Part, part: Part): void {
  for (const [name, value] of Object.entries(part)) {
    if (Array.isArray(whole[name])) whole[name].push(...value);
    else if (name in whole) add(whole[name], value);
    else whole[name] = value;
  }
}

/** Examples of all errors, from their messages; and the errors of one status, from their codes. */
function completeErrors({ schemas, responses, examples }: Part): void {
  schemas.ErrorReply.properties.code.enum = Object.keys(CATALOGUE);
  for (const [code, { summary, message }] of Object.entries<Part>(examples)) {
    examples[code] = { summary, value: { code, message, status: CATALOGUE[code as ErrorCode] } };
  }
  for (const [name, reply] of Object.entries<Part>(responses)) {
    const { codes, headers } = reply as { codes?: ErrorCode[]; headers?: Part };
    responses[name] = jsonIn(reply);
    if (codes === undefined) continue;
    const description = codes.map((code) => `\`${code}\`: ${examples[code].summary}`).join('\n\n');
    // A schema of its own: generators make a plain type of it.
    schemas[`${name}Error`] = {
      type: 'object',
      description,
      required: ['code', 'message', 'status'],
      properties: {
        code: { type: 'string', enum: codes, description: 'The error code, for programs.' },
        message: { type: 'string', minLength: 1, description: 'The error and its remedy, for people.' },
        status: { type: 'integer', enum: [CATALOGUE[codes[0]]], description: 'The HTTP status of the reply.' },
      },
    };
    const shown = Object.fromEntries(codes.map((code) => [code, refTo(`examples/${code}`)]));
    const content = { 'application/json': { schema: refTo(`schemas/${name}Error`), examples: shown } };
    responses[name] = { description, ...(headers && { headers }), content };
  }
}

/** Replaces the members of JSON content, beginning with `schema`, by that content. */
function jsonIn({ schema, example, examples, ...rest }: Part): Part {
  if (schema === undefined) return rest;
  const shown = example === undefined ? { examples } : { example };
  return { ...rest, content: { 'application/json': { schema, ...shown } } };
}

/** Writes out an operation. `ending`: the headers of every reply to a deprecated one. */
function completed({ errors, ...operation }: Part, { components }: Part, ending: Part): Part {
  if (operation['x-pagination']) operation['x-pagination'] = PAGES;
  if (typeof operation.parameters === 'string') {
    operation.parameters = operation.parameters.split(' ').map((name: string) => refTo(`parameters/${name}`));
  }
  if (operation.requestBody) operation.requestBody = jsonIn(operation.requestBody);
  for (const [status, reply] of Object.entries<Part>(operation.responses)) operation.responses[status] = jsonIn(reply);
  for (const name of errors.split(' ').flatMap((one: string) => (ERRORS[one] ?? one).split(' '))) {
    const { enum: statuses } = components.schemas[`${name}Error`]?.properties.status ?? {};
    operation.responses[statuses?.[0] ?? OTHER_STATUSES[name]] = refTo(`responses/${name}`);
  }
  if (operation.deprecated) {
    for (const [status, reply] of Object.entries<Part>(operation.responses)) {
      const shared = components.responses[nameOf(reply.$ref)] ?? reply;
      const isKnown = !BEFORE_THE_OPERATION.includes(status);
      const headers = isKnown ? ending.headers : optional(components.headers, ending.headers);
      operation.responses[status] = { ...shared, headers: { ...shared.headers, ...headers } };
    }
  }
  return operation;
}

const optional = (headers: Part, named: Part) =>
  Object.fromEntries(
    Object.entries(named).map(([name, { $ref }]) => [name, { ...headers[nameOf($ref)], required: false }]),
  );

const nameOf = (ref = '') => ref.split('/').at(-1) as string;
