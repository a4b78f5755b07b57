/** The list of faults: how one is said, which request uses which up, and that the drill's script is one of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJson } from '../../src/json/reader.ts';
import { DRILL, DRILL_IN_WORDS } from '../../src/lab/drill.ts';
import { Faults, type NewFault, readFault } from '../../src/lab/faults.ts';
import { ENDPOINTS } from '../../src/routes.ts';

const NAMES = ENDPOINTS.map(({ name }) => name);
const read = (text: string) => readFault(readJson(Buffer.from(text)), NAMES);
const fault = (kind: NewFault['kind'], more: Partial<NewFault> = {}): NewFault => {
  return { kind, times: 1, skip: 0, ...more };
};

test('a fault as it is said, and what is left out', () => {
  const rows: [text: string, expected: Partial<NewFault>][] = [
    ['{"kind":"drop_after"}', {}],
    ['{"kind":"delay"}', { ms: 1_000 }],
    ['{"kind":"drip","ms":30000}', { ms: 30_000 }],
    ['{"kind":"unavailable","seconds":9}', { seconds: 9 }],
    ['{"kind":"truncate","operation":"listPets","times":3,"skip":2}', { operation: 'listPets', times: 3, skip: 2 }],
  ];
  for (const [text, more] of rows) {
    const nothing = { operation: undefined, ms: undefined, seconds: undefined };
    assert.deepEqual(read(text), fault(JSON.parse(text).kind, { ...nothing, ...more }), text);
  }
});

test('what is wrong with a fault is told, all of it', () => {
  const rows: [text: string, ...told: RegExp[]][] = [
    ['[]', /must be a JSON object/],
    ['{}', /kind: is missing/],
    ['{"kind":"fire"}', /kind: must be one of "delay"/],
    ['{"kind":"delay","operation":"feedPet"}', /operation: must be one of "listPets"/],
    ['{"kind":"delay","times":0,"skip":-1,"ms":30001}', /times: .*1 to 1000/, /skip: .*0 to 1000/, /ms: .*0 to 30000/],
    ['{"kind":"delay","times":1.5,"skip":"1"}', /times: /, /skip: /],
    ['{"kind":"unavailable","seconds":0}', /seconds: .*1 to 3600/],
    ['{"kind":"unavailable","ms":5}', /ms: is for delay and drip/],
    ['{"kind":"drop_after","seconds":5}', /seconds: is for unavailable/],
    ['{"kind":"delay","color":"red"}', /"color": is unknown/],
  ];
  for (const [text, ...told] of rows) {
    for (const message of told) assert.throws(() => read(text), { message }, text);
  }
});

test('in order of arrival, the first that fits is used up, and only by as many as it is for', () => {
  const faults = new Faults();
  faults.arm([
    fault('delay', { operation: 'createPet' }),
    fault('truncate', { times: 2, skip: 1 }),
    fault('drip', { operation: 'listPets' }),
  ]);
  const met = (operation: string) => faults.useUp(operation)?.kind;
  assert.equal(met('listPets'), 'drip'); // truncate lets one pass, which the next in line then meets
  assert.equal(met('listPets'), 'truncate');
  assert.equal(met('createPet'), 'delay');
  assert.equal(met('putCategory'), 'truncate');
  assert.equal(met('createPet'), undefined);
  assert.deepEqual(faults.armed, []);
});

test('at most sixteen at once, all of a script or none of it; ids are never given again', () => {
  const faults = new Faults();
  const one = fault('delay');
  for (let id = 1; id <= 10; id++) assert.equal(faults.arm([one])[0].id, id);
  assert.throws(() => faults.arm(Array(7).fill(one)), /at most 16 faults/);
  assert.equal(faults.armed.length, 10);
  faults.arm(Array(6).fill(one));
  assert.throws(() => faults.arm([one]), { code: 'invalid_body' });
  faults.armed = [];
  assert.deepEqual([faults.armed.length, faults.arm([one])[0].id], [0, 17]);
});

test('the drill fits on an empty list, and its words say each of its faults', () => {
  new Faults().arm(DRILL);
  for (const { kind, operation, ms, seconds, times, skip } of DRILL) {
    const text = JSON.stringify({ kind, operation, ms, seconds, times, skip });
    assert.deepEqual(read(text), { kind, operation, ms, seconds, times, skip }, text);
  }
  assert.ok(DRILL_IN_WORDS.length > DRILL.length);
});
