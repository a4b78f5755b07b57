/** What holds for every OpenAPI document that a server has, with the parts of extras or without. */
import assert from 'node:assert/strict';
import { assertCommon } from '../raw.ts';
import { checkValue, type Part, resolve } from './schema.ts';

/** Its operations, each with the whole path. */
export function operationsOf({ paths, servers }: Part) {
  const base = new URL(servers[0].url).pathname.replace(/\/$/, '');
  return Object.entries<Part>(paths).flatMap(([path, item]) =>
    Object.entries<Part>(item).map(([method, operation]) => {
      return { method: method.toUpperCase(), path: base + path, operation };
    }),
  );
}

/**
 * Nothing is in it that nothing refers to; each reply has the headers of all, and each of a deprecated operation those of
 * its end; its examples fit their schemas. Returns the number of these.
 */
export function checkDocument(document: Part, headersOfAll: readonly string[] = []): number {
  const text = JSON.stringify(document);
  const named = Object.entries<Part>(document.components).flatMap(([kind, parts]) =>
    kind === 'securitySchemes' ? [] : Object.keys(parts).map((name) => `"$ref":"#/components/${kind}/${name}"`),
  );
  assert.deepEqual(
    named.filter((ref) => !text.includes(ref)),
    [],
  );
  assert.doesNotMatch(text, /openapi\.json#|x-headers-of-every-reply/);
  for (const { operation } of operationsOf(document)) {
    for (const [status, reply] of Object.entries<Part>(operation.responses)) {
      const { headers } = resolve(document, reply);
      const of = `${operation.operationId} ${status}`;
      for (const name of ['X-RateLimit-Reset', 'RateLimit', 'X-Request-Id', ...headersOfAll]) {
        assert.ok(name in headers, of);
      }
      const ending = operation.deprecated === true ? !/408|414|431|default/.test(status) : undefined;
      assert.equal(headers.Sunset && resolve(document, headers.Sunset).required, ending, of);
    }
  }
  let examples = 0;
  const walk = (part: unknown, at: string): void => {
    if (typeof part !== 'object' || part === null) return;
    for (const [name, inner] of Object.entries(part)) walk(inner, `${at}/${name}`);
    const { schema, example, examples: more = {} } = part as Part;
    if (schema === undefined) return;
    const values = Object.values<Part>(more).map((one) => resolve(document, one).value);
    for (const value of example === undefined ? values : [example, ...values]) {
      assert.deepEqual(checkValue(document, schema, value, at), []);
      examples++;
    }
  };
  walk(document, '#');
  return examples;
}

/** The server at this address has the methods that the document names, at each path. */
export async function checkMethods(document: Part, url: string): Promise<void> {
  const described = operationsOf(document);
  for (const template of new Set(described.map(({ path }) => path))) {
    const served = described.filter(({ path }) => path === template);
    const path = template.replaceAll(/\{\w+\}/g, '1');
    const methods = served.map(({ method }) => method);
    const expected = ['OPTIONS', ...methods, ...(methods.includes('GET') ? ['HEAD'] : [])];
    const { headers } = await fetch(new URL(path, url), { method: 'OPTIONS' });
    assert.deepEqual(headers.get('allow')?.split(', ').sort(), expected.sort(), path);
  }
}

/** A page is for whoever has no key. */
export async function checkPage(url: URL, type: string, begin: string): Promise<void> {
  const get = (method = 'GET') => fetch(url, { method });
  const reply = await get();
  const body = await reply.text();
  assert.equal(reply.status, 200);
  assertCommon(new Map(reply.headers), false);
  assert.equal(reply.headers.get('content-type'), type);
  assert.equal(Number(reply.headers.get('content-length')), Buffer.byteLength(body));
  assert.ok(body.startsWith(begin), body.slice(0, 40));
  const head = await get('HEAD');
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, `${Buffer.byteLength(body)}`]);
}
