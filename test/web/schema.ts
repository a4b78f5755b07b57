/**
 * Checks replies against the interface description: status, headers and body, each way round. What the document does
 * not tell is a fault, and a schema keyword that is not understood here throws: nothing passes unlooked at.
 */

type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };
// biome-ignore lint/suspicious/noExplicitAny: a document is walked by names that only the document knows
type Part = { [name: string]: any };

const MIN_INT64 = -(2n ** 63n);
const MAX_INT64 = 2n ** 63n - 1n;
const JSON_TYPE = 'application/json; charset=utf-8';

/** What HTTP/1.1, the connection and caution need, whatever the interface says. */
const OF_TRANSPORT = 'date connection keep-alive content-type content-length cache-control x-content-type-options';
/** There only for pages of another origin that the operator let in. */
const OF_CORS = /^(access-control-.*|vary)$/;

/** JSON.parse, but an integer of 16 digits or more, which a double may not hold, is a bigint. */
export function parseExact(text: string): Json {
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => {
    if (token.startsWith('"')) return `"s${token.slice(1)}`;
    return /^-?\d{16,}$/.test(token) ? `"i${token}"` : token;
  });
  const revive = (value: Json): Json => {
    if (typeof value === 'string') return value[0] === 's' ? value.slice(1) : BigInt(value.slice(1));
    if (Array.isArray(value)) return value.map(revive);
    if (!isObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.slice(1), revive(item)]));
  };
  return revive(JSON.parse(marked));
}

/** Follows `$ref` as far as it goes. */
export function resolve(document: object, part: Part): Part {
  while (typeof part.$ref === 'string') {
    const path: string[] = part.$ref.slice('#/'.length).split('/');
    const found = path.reduce((at: Part | undefined, name) => at?.[name.replaceAll('~1', '/')], document as Part);
    if (found === undefined) throw new Error(`${part.$ref} leads nowhere`);
    part = found;
  }
  return part;
}

const isObject = (value: unknown): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isInteger = (value: unknown): value is number | bigint => typeof value === 'bigint' || Number.isInteger(value);
const isInt64 = (value: unknown): boolean => isInteger(value) && value >= MIN_INT64 && value <= MAX_INT64;
const show = (value: unknown): string =>
  JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? `${item}` : item));

const TYPES: Record<string, (value: Json) => boolean> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  integer: isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
};
const FORMATS: Record<string, (value: Json) => boolean> = {
  int64: isInt64,
  'date-time': (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
};

/** Whether a value keeps a keyword's rule. As JSON Schema has it, one that is of another type always does. */
// biome-ignore lint/suspicious/noExplicitAny: what a rule is depends on its keyword
const KEPT: Record<string, (value: Json, rule: any) => boolean> = {
  type: (value, rule) => [rule].flat().some((type) => TYPES[type](value)),
  format: (value, rule) => FORMATS[rule](value),
  enum: (value, rule) => rule.includes(value),
  const: (value, rule) => value === rule,
  minimum: (value, rule) => !isInteger(value) || value >= rule,
  maximum: (value, rule) => !isInteger(value) || value <= rule,
  minLength: (value, rule) => typeof value !== 'string' || [...value].length >= rule,
  maxLength: (value, rule) => typeof value !== 'string' || [...value].length <= rule,
  pattern: (value, rule) => typeof value !== 'string' || new RegExp(rule, 'u').test(value),
  maxItems: (value, rule) => !Array.isArray(value) || value.length <= rule,
  required: (value, rule) => !isObject(value) || rule.every((name: string) => Object.hasOwn(value, name)),
};
const SAYS_NOTHING = ['description', 'default', 'additionalProperties'];
const LEADS_ON = ['items', 'properties', 'allOf'];

/** All that is wrong with a value. A member that the schema does not name is wrong, whatever the schema lets pass. */
export function checkValue(document: object, part: Part, value: Json, at = 'body'): string[] {
  const faults = checkKnown(document, part, value, at);
  if (!isObject(value)) return faults;
  const known = namesOf(document, part);
  const unknown = Object.keys(value).filter((name) => !known.has(name));
  return [...faults, ...unknown.map((name) => `${at}: the member ${name} is not told of`)];
}

function checkKnown(document: object, part: Part, value: Json, at: string): string[] {
  const schema = resolve(document, part);
  const faults: string[] = [];
  for (const [keyword, rule] of Object.entries(schema)) {
    if (SAYS_NOTHING.includes(keyword) || LEADS_ON.includes(keyword)) continue;
    if (!Object.hasOwn(KEPT, keyword)) throw new Error(`${at}: the keyword ${keyword} is not understood`);
    if (!KEPT[keyword](value, rule)) faults.push(`${at}: ${show(value)} breaks ${keyword} ${show(rule)}`);
  }
  for (const one of schema.allOf ?? []) faults.push(...checkKnown(document, one, value, at));
  if (schema.items !== undefined && Array.isArray(value)) {
    faults.push(...value.flatMap((item, i) => checkValue(document, schema.items, item, `${at}[${i}]`)));
  }
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const there = isObject(value) && Object.hasOwn(value, name);
    if (there) faults.push(...checkValue(document, member as Part, value[name], `${at}.${name}`));
  }
  return faults;
}

function namesOf(document: object, part: Part): Set<string> {
  const { properties = {}, allOf = [] } = resolve(document, part);
  return new Set([...Object.keys(properties), ...allOf.flatMap((one: Part) => [...namesOf(document, one)])]);
}

/** The path item of the document that a path of the service belongs to. */
function placeOf(document: Part, path: string): Part | undefined {
  const [pathname] = path.split('?');
  const templates = Object.keys(document.paths);
  const whole = (template: string) => (template.startsWith('/lab/') ? template : `/v1${template}`);
  const fits = (template: string) => new RegExp(`^${whole(template).replace(/\{\w+\}/, '[^/]+')}$`).test(pathname);
  const found = templates.find(fits);
  return found === undefined ? undefined : document.paths[found];
}

/** What is told of a refusal where there is no operation: the shared reply of that status and code. */
function sharedRefusal(document: Part, status: number, code: unknown): Part {
  const { responses } = document.components;
  const fits = (response: Part) => {
    const { code: codes, status: is } = response.content['application/json'].schema.allOf?.[1].properties ?? {};
    return is?.const === status && codes.enum.includes(code);
  };
  return Object.values<Part>(responses).find(fits) ?? responses.OtherError;
}

function checkHeaders(document: object, told: Part, headers: Map<string, string>): string[] {
  const faults: string[] = [];
  for (const [name, part] of Object.entries(told)) {
    const { required, schema } = resolve(document, part as Part);
    const sent = headers.get(name.toLowerCase());
    if (sent === undefined) {
      if (required) faults.push(`${name}: is missing`);
    } else {
      const value = schema.type === 'integer' && /^\d+$/.test(sent) ? Number(sent) : sent;
      faults.push(...checkValue(document, schema, value, name));
    }
  }
  const known = new Set([...OF_TRANSPORT.split(' '), ...Object.keys(told).map((name) => name.toLowerCase())]);
  const unknown = [...headers.keys()].filter((name) => !known.has(name) && !OF_CORS.test(name));
  return [...faults, ...unknown.map((name) => `${name}: is not told of`)];
}

function checkBody(document: object, response: Part, status: number, type: string | undefined, text: string): string[] {
  if (response.content === undefined) return text === '' ? [] : ['there is a body'];
  if (type !== JSON_TYPE) return [`Content-Type: ${type} is not ${JSON_TYPE}`];
  const body = parseExact(text);
  const faults = checkValue(document, response.content['application/json'].schema, body);
  if (status < 400 || !isObject(body)) return faults;
  const told = (document as Part).components.examples[String(body.code)]?.value.status;
  if (body.status !== status || told !== status) faults.push(`body: its code or status does not belong to ${status}`);
  return faults;
}

/**
 * Everything in which a reply is not as the document tells. `path` as it was sent, with `/v1` and its query;
 * `headers` as fetch has them, or a Map.
 */
export function checkReply(
  document: object,
  method: string,
  path: string,
  status: number,
  headers: Iterable<[string, string]>,
  bodyText: string,
): string[] {
  const sent = new Map([...headers].map(([name, value]) => [name.toLowerCase(), value]));
  const place = placeOf(document as Part, path);
  if (method === 'OPTIONS' && place !== undefined && status === 204) {
    const { Allow, ...told } = (document as Part).components.responses.OtherError.headers;
    const faults = checkHeaders(document, { Allow, ...told }, sent);
    return [...faults, ...(sent.has('allow') ? [] : ['Allow: is missing']), ...(bodyText === '' ? [] : ['a body'])];
  }
  const operation = place?.[method === 'HEAD' ? 'get' : method.toLowerCase()];
  const code = status >= 400 && bodyText !== '' ? (parseExact(bodyText) as Part).code : undefined;
  const told = operation === undefined ? sharedRefusal(document as Part, status, code) : operation.responses[status];
  if (told === undefined) return [`${operation.operationId}: the status ${status} is not told of`];
  if (operation === undefined && status < 400) return [`${method} ${path}: is not told of, yet answered ${status}`];
  const response = resolve(document, told);
  const faults = checkHeaders(document, response.headers, sent);
  if (method === 'HEAD') return bodyText === '' ? faults : [...faults, 'a reply to HEAD has a body'];
  return [...faults, ...checkBody(document, response, status, sent.get('content-type'), bodyText)];
}
