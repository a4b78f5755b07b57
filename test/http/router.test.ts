/** What any router here must do: the contract, run on the one there is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Match, Router } from '../../src/http/router.ts';

interface AnyRouter {
  add(pattern: string, value: string): void;
  find(path: string): Match<string> | undefined;
}

function contract(name: string, create: () => AnyRouter): void {
  const filled = () => {
    const router = create();
    for (const pattern of ['/', '/a', '/a/{id}', '/a/b', '/a/b/{id}', '/c/d/{id}']) router.add(pattern, pattern);
    return router;
  };
  const rows: [path: string, value: string | undefined, param?: string][] = [
    ['/', '/'],
    ['/a', '/a'],
    ['/a/b', '/a/b'], // exact text goes before a parameter
    ['/a/1', '/a/{id}', '1'],
    ['/a/B', '/a/{id}', 'B'],
    ['/a/%2f', '/a/{id}', '%2f'],
    ['/a/{id}', '/a/{id}', '{id}'],
    ['/a/__proto__', '/a/{id}', '__proto__'],
    ['/a/b/2', '/a/b/{id}', '2'],
    ['/c/d/3', '/c/d/{id}', '3'],
    ['', undefined],
    ['a', undefined],
    ['/A', undefined],
    ['/a/', undefined],
    ['/a//1', undefined],
    ['/a/1/', undefined],
    ['/a/1/2', undefined],
    ['//a', undefined],
    ['/c', undefined],
    ['/c/d', undefined],
    ['/constructor', undefined],
    ['/a?x', undefined],
  ];
  for (const [path, value, param = ''] of rows) {
    test(`${name}: ${path || 'nothing'} → ${value ?? 'no place'}`, () => {
      assert.deepEqual(filled().find(path), value === undefined ? undefined : { value, param });
    });
  }

  test(`${name}: a parameter is whatever stands there, as it was sent`, () => {
    const segment = fc.string({ minLength: 1, unit: 'binary' }).filter((text) => !text.includes('/') && text !== 'b');
    const router = filled();
    fc.assert(
      fc.property(segment, (text) => assert.deepEqual(router.find(`/a/${text}`), { value: '/a/{id}', param: text })),
    );
  });

  test(`${name}: nothing is found where nothing was added`, () => {
    fc.assert(fc.property(fc.webPath(), (path) => assert.equal(create().find(path), undefined)));
  });
}

contract('Router', () => new Router<string>());
