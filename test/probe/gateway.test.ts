/** The probe through itself, through a gateway that does all as it should, and through one that breaks each rule in turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CASES, probeGateway } from '../../src/probe/probe.ts';
import { freePort } from '../program.ts';
import { FAULTS } from './faults.ts';
import { proxyFor } from './proxy.ts';

const TRIED_AT_ONCE = 8;
/** From before the first request on an idle connection until behind the last: 4 s, 5 s and 6 s are over at once. */
const STALL_AT_MS = 3_500;
const STALL_MS = 3_000;

async function probed(through: string, port: number, only?: string[], slow = false) {
  const run = await probeGateway({ listen: { host: '127.0.0.1', port }, through, only, slow }, () => {});
  return run.cases;
}

test('through itself 90 cases and more, and nothing breaks', async () => {
  const port = await freePort();
  const cases = await probed(`http://127.0.0.1:${port}`, port);
  assert.ok(cases.length >= 90, `${cases.length} cases`);
  assert.deepEqual(
    cases.filter(({ verdict }) => verdict === 'breaks'),
    [],
  );
  assert.equal(new Set(CASES).size, CASES.length);
});

test('through a gateway that does all as it should nothing breaks', async (t) => {
  const port = await freePort();
  const cases = await probed(await proxyFor(t, port, { head: ownHost }), port);
  assert.deepEqual(
    cases.filter(({ verdict }) => verdict === 'breaks'),
    [],
  );
  assert.ok(cases.filter(({ verdict }) => verdict === 'same').length >= 85);
});

test('a process that gets no processor for seconds says the same of idle connections', async () => {
  const port = await freePort();
  const stalled = new Int32Array(new SharedArrayBuffer(4));
  const timer = setTimeout(() => Atomics.wait(stalled, 0, 0, STALL_MS), STALL_AT_MS);
  const cases = await probed(`http://127.0.0.1:${port}`, port, ['idle-4', 'idle-6']);
  clearTimeout(timer);
  const verdicts = cases.map(
    ({ id, verdict, arrived }) => `${id} ${verdict}, arrived ${arrived.split('GET ').length - 1}`,
  );
  assert.deepEqual(verdicts, ['idle-4 same, arrived 2', 'idle-6 allowed, arrived 1']);
});

/** RFC 9112 3.2.2: where the target names a host, it is that. */
function ownHost([line, ...lines]: string[]): string[] {
  const host = /^\w+ http:\/\/([^/]+)/.exec(line)?.[1];
  return [line, ...lines.map((one) => (host && one.startsWith('Host: ') ? `Host: ${host}` : one))];
}

test('each case is seen to break', async (t) => {
  assert.deepEqual(Object.keys(FAULTS).sort(), [...CASES].sort());
  const left = [...CASES];
  const wrong: string[] = [];
  const tryOne = async (id: string) => {
    const port = await freePort();
    const [found] = await probed(await proxyFor(t, port, FAULTS[id]), port, [id]);
    if (found.verdict !== 'breaks') wrong.push(`${id}: ${found.verdict} ${found.why}\n${found.arrived}\n${found.came}`);
    assert.match(found.rule, /^RFC \d{4} \d/, id);
  };
  const work = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift())
      await tryOne(id).catch((error) => wrong.push(`${id}: ${error}`));
  };
  await Promise.all(Array.from({ length: TRIED_AT_ONCE }, work));
  assert.equal(wrong.join('\n'), '');
});
