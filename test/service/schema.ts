/**
 * Checks replies against the OpenAPI document: status, headers and body, each way round. What the document does not
 * tell is a fault: also a member that a schema does not name, whatever JSON Schema would let pass.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

// biome-ignore lint/suspicious/noExplicitAny: a document is walked by names that only the document knows
export type Part = { [name: string]: any };

const MAX_INT64 = 2n ** 63n - 1n;
const JSON_TYPE = 'application/json; charset=utf-8';
/** What HTTP/1.1, the connection and caution need, whatever the document says. */
const OF_TRANSPORT = 'date connection keep-alive content-type content-length cache-control x-content-type-options';
/** There only for pages of another origin that the operator let in. */
const OF_CORS = /^(access-control-.*|vary)$/;

/** Follows `$ref` as far as it goes. */
export function resolve(document: object, part: Part): Part {
  while (typeof part.$ref === 'string') {
    const path = part.$ref.slice('#/'.length).split('/');
    const found = path.reduce((at: Part | undefined, name) => at?.[name.replaceAll('~1', '/')], document as Part);
    if (found === undefined) throw new Error(`${part.$ref} leads nowhere`);
    part = found;
  }
  return part;
}

/** A part of the document as plain JSON Schema in which no object has unnamed members. `id`: that of the document. */
function asSchema(id: string, part: unknown, mayClose = true): unknown {
  if (Array.isArray(part)) return part.map((one) => asSchema(id, one, false));
  if (typeof part !== 'object' || part === null) return part;
  const inner = Object.entries(part).map(([name, one]) => {
    if (name === '$ref') return [name, one.replace('#/components/schemas/', `${id}#/$defs/`)];
    if (name === 'properties') {
      return [name, Object.fromEntries(Object.entries(one).map(([k, v]) => [k, asSchema(id, v)]))];
    }
    return [name, asSchema(id, one, name === 'items')];
  });
  return { ...Object.fromEntries(inner), ...(mayClose && { unevaluatedProperties: false }) };
}

/** A keyword that is not known throws: nothing passes unlooked at. */
const checker = new Ajv2020({ allErrors: true, strictTypes: false });
checker.addFormat('int64', { type: 'number', validate: Number.isInteger }); // its bounds: outOfBounds
checker.addFormat('date-time', (text: string) => !Number.isNaN(Date.parse(text)));
const compiled = new WeakMap<object, ValidateFunction>();
const ids = new WeakMap<object, string>();
let documents = 0;

/** Under what id the checker knows the schemas of a document. */
function idOf(document: Part): string {
  let $id = ids.get(document);
  if ($id !== undefined) return $id;
  $id = `document:${++documents}`;
  ids.set(document, $id);
  const $defs = Object.entries(document.components.schemas).map(([name, part]) => [name, asSchema($id, part, false)]);
  checker.addSchema({ $id, $defs: Object.fromEntries($defs) });
  return $id;
}

function compile(document: Part, schema: Part): ValidateFunction {
  const validate = checker.compile(asSchema(idOf(document), schema) as Part);
  compiled.set(schema, validate);
  return validate;
}

/** All that is wrong with a value. */
export function checkValue(document: object, schema: Part, value: unknown, at = 'body'): string[] {
  const validate = compiled.get(schema) ?? compile(document, schema);
  validate(value);
  const errors = validate.errors ?? [];
  return errors.map(({ instancePath, message, params }) => `${at}${instancePath} ${message} ${JSON.stringify(params)}`);
}

/** The integers in a JSON text that 64 bits do not hold, which JSON.parse would round. */
function outOfBounds(text: string): string[] {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g) ?? [];
  const integers = tokens.filter((token) => /^-?\d{16,}$/.test(token)).map(BigInt);
  return integers.filter((n) => n > MAX_INT64 || n < -MAX_INT64 - 1n).map((n) => `body: ${n} is beyond 64 bits`);
}

/** The path item of the document that a path of the service belongs to. */
function placeOf(document: Part, path: string): Part | undefined {
  const [pathname] = path.split('?');
  const base = new URL(document.servers[0].url).pathname.replace(/\/$/, '');
  const fits = (template: string) => new RegExp(`^${(base + template).replace(/\{\w+\}/, '[^/]+')}$`).test(pathname);
  return document.paths[Object.keys(document.paths).find(fits) ?? ''];
}

/** What describes a refusal where there is no operation: the shared reply of that status and code. */
function sharedRefusal(document: Part, status: number, code: unknown): Part {
  const { responses } = document.components;
  const fits = (response: Part) => {
    if (response.content === undefined) return false;
    const { code: codes, status: is } = resolve(document, response.content['application/json'].schema).properties;
    return is.enum?.[0] === status && codes.enum.includes(code);
  };
  return Object.values<Part>(responses).find(fits) ?? responses.OtherError;
}

function checkHeaders(document: object, described: Part, headers: Map<string, string>): string[] {
  const faults = Object.entries(described).flatMap(([name, part]) => {
    const { required, schema } = resolve(document, part);
    const sent = headers.get(name.toLowerCase());
    if (sent === undefined) return required ? [`${name}: is missing`] : [];
    const type = resolve(document, schema).type;
    return checkValue(document, schema, type === 'integer' && /^\d+$/.test(sent) ? Number(sent) : sent, name);
  });
  const known = new Set([...OF_TRANSPORT.split(' '), ...Object.keys(described).map((name) => name.toLowerCase())]);
  const unknown = [...headers.keys()].filter((name) => !known.has(name) && !OF_CORS.test(name));
  return [...faults, ...unknown.map((name) => `${name}: is not described`)];
}

function checkBody(document: Part, response: Part, status: number, type: string | undefined, text: string): string[] {
  if (response.content === undefined) return text === '' ? [] : ['there is a body'];
  if (type !== JSON_TYPE) return [`Content-Type: ${type} is not ${JSON_TYPE}`];
  const body = JSON.parse(text);
  const schema = response.content['application/json'].schema;
  const faults = [...outOfBounds(text), ...checkValue(document, schema, body)];
  const isOther = status >= 400 && document.components.examples[body.code]?.value.status !== status;
  return isOther ? [...faults, `body: its code does not belong to ${status}`] : faults;
}

/**
 * Everything in which a reply is not as the document tells. `path` as it was sent, with `/v1` and its query;
 * `headers` as fetch has them, or a Map.
 */
export function checkReply(
  document: Part,
  method: string,
  path: string,
  status: number,
  headers: Iterable<[string, string]>,
  text: string,
): string[] {
  const sent = new Map([...headers].map(([name, value]) => [name.toLowerCase(), value]));
  const place = placeOf(document, path);
  if (method === 'OPTIONS' && place !== undefined && status === 204) {
    const { Allow, ...described } = document.components.responses.OtherError.headers;
    const required = { ...resolve(document, Allow), required: true };
    const patch = place.patch && { 'Accept-Patch': { ...document.components.headers.AcceptPatch, required: true } };
    const due = { Allow: required, ...patch, ...described };
    return [...checkHeaders(document, due, sent), ...(text === '' ? [] : ['there is a body'])];
  }
  const operation = place?.[method === 'HEAD' ? 'get' : method.toLowerCase()];
  if (operation === undefined && status < 400) return [`${method} ${path}: is not described, yet answered ${status}`];
  const code = status >= 400 && text !== '' ? JSON.parse(text).code : undefined;
  const described = operation === undefined ? sharedRefusal(document, status, code) : operation.responses[status];
  if (described === undefined) return [`${operation.operationId}: the status ${status} is not described`];
  const response = resolve(document, described);
  const faults = checkHeaders(document, response.headers, sent);
  if (method === 'HEAD') return text === '' ? faults : [...faults, 'a reply to HEAD has a body'];
  return [...faults, ...checkBody(document, response, status, sent.get('content-type'), text)];
}
