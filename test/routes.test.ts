/** Where the router looks, and which rows it cannot have. What it answers is tried in test/api. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENDPOINTS, placesOf } from '../src/routes.ts';

const [some] = ENDPOINTS;

test('whatever the last segment is called, all methods stand at one place', () => {
  const places = placesOf([
    { ...some, method: 'PUT', path: '/v1/categories/{categoryId}' },
    { ...some, method: 'GET', path: '/v1/categories/{id}' },
  ]);
  assert.deepEqual([...places.keys()], ['/v1/categories/']);
  assert.equal(places.get('/v1/categories/')?.allow, 'GET, HEAD, PUT, OPTIONS');
});

test('a parameter that is not the last segment would match nothing: there is no such row', () => {
  const path = '/v1/pets/{petId}/orders';
  assert.throws(() => placesOf([{ ...some, path }]), new Error(`${path}: only the last segment can be a parameter`));
});
