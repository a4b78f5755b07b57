/** Clients in the drill, in real time: the errands to copy from extras/lab/errand, and libraries that retry. */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { describe, it, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Agent, RetryAgent, request } from 'undici';
import { temporary } from '../../program.ts';
import { serveLab, shop } from './clients.ts';

const run = promisify(execFile);

/** The program, with the drill armed. `graded`: the grade, and the checks that failed. */
async function start(t: TestContext) {
  const { url, key, ask } = await serveLab(t, await temporary(t));
  await ask('POST /lab/drill');
  const graded = async () => {
    assert.deepEqual((await ask('GET /lab/faults')).json, [], 'every fault of the drill was met');
    const { grade, checks } = (await ask('GET /lab/grade')).json;
    const failed = checks.filter(({ verdict }: { verdict: string }) => verdict === 'fail');
    return { grade, fails: failed.map(({ id }: { id: string }) => id), checks };
  };
  return { origin: new URL(url).origin, key, graded };
}

const errandFile = (name: string) => fileURLToPath(new URL(`../errand/${name}`, import.meta.url));

/** What runs it, how one sees that this is there, the grade, and what fails. */
const ERRANDS: [name: string, command: string[], look: string[], grade: string, fails: string[]][] = [
  ['errand.mjs', [process.execPath], [process.execPath, '--version'], 'A', []],
  ['errand.py', ['python3'], ['python3', '--version'], 'A', []],
  ['errand.go', ['go', 'run'], ['go', 'version'], 'A', []],
  ['errand.sh', ['sh'], ['curl', '--version'], 'B', ['reuse']], // a process, and so a connection, for each request
];

describe('errands to copy', { concurrency: true }, () => {
  for (const [name, [file, ...words], [program, ...look], expected, expectedFails] of ERRANDS) {
    const isMissing = spawnSync(program, look).status !== 0;
    it(`${name}: ${expected}`, { skip: isMissing && `${program} is not installed` }, async (t) => {
      const { origin, key, graded } = await start(t);
      const cache = { GOCACHE: process.env.GOCACHE ?? '/tmp/petstore-go-cache', GOFLAGS: '-mod=mod' };
      const env = { ...process.env, ...cache, PETSTORE_URL: origin, PETSTORE_KEY: key };
      await run(file, [...words, errandFile(name)], { env });
      const { grade, fails, checks } = await graded();
      assert.deepEqual([grade, fails], [expected, expectedFails], JSON.stringify(checks, null, 1));
    });
  }
});

test('undici with its RetryAgent, and an Idempotency-Key for each thing that is made: an A', async (t) => {
  const { origin, key, graded } = await start(t);
  const retried = { methods: ['GET', 'POST'] as ('GET' | 'POST')[], statusCodes: [429, 500, 502, 503, 504] };
  const times = { minTimeout: 100, maxTimeout: 120_000 };
  const dispatcher = new RetryAgent(new Agent({ connections: 1 }), { ...retried, ...times });
  t.after(() => dispatcher.close());
  const ask = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const made = { 'content-type': 'application/json', 'idempotency-key': randomUUID() };
    const headers = { authorization: `Bearer ${key}`, ...made };
    const reply = await request(origin + path, { method, dispatcher, headers, body: body && JSON.stringify(body) });
    if (reply.statusCode >= 400) throw new Error(await reply.body.text());
    return { link: String(reply.headers.link ?? ''), json: (await reply.body.json()) as { id: number } };
  };
  await shop({
    async listAll() {
      for (let next: string | undefined = '/v1/pets?limit=10'; next !== undefined; ) {
        // Of a reply that breaks off it has seen the head: it leaves it to its caller to ask for all of it again.
        const { link }: { link: string } = await ask('GET', next).catch(() => ask('GET', next as string));
        next = /<([^>]+)>; rel="next"/.exec(link)?.[1];
      }
    },
    add: async (name) => (await ask('POST', '/v1/pets', { name, categoryId: 1 })).json.id,
    order: (petId) => ask('POST', '/v1/store/orders', { petId }),
  });
  const { grade, checks } = await graded();
  assert.equal(grade, 'A', JSON.stringify(checks, null, 1));
});
