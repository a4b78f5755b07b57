/** Clients of others in the drill, in real time: undici's RetryAgent with care, and urllib3 where it is installed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Agent, RetryAgent, request } from 'undici';
import { temporary } from '../program.ts';
import { serveLab, shop } from './clients.ts';

/** The program after the drill was armed, and what became of a client. */
async function start(t: TestContext) {
  const { url, key, ask } = await serveLab(t, await temporary(t));
  await ask('POST /lab/drill');
  const graded = async () => (await ask('GET /lab/grade')).json;
  return { origin: new URL(url).origin, key, ask, graded };
}

test('undici with its RetryAgent, and an Idempotency-Key for each thing that is made: an A', async (t) => {
  const { origin, key, ask: askLab, graded } = await start(t);
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
  const { grade, seen, checks } = await graded();
  assert.deepEqual((await askLab('GET /lab/faults')).json, []);
  assert.deepEqual([grade, seen], ['A', 95], JSON.stringify(checks, null, 2));
});

const URLLIB3 = `
import json, sys, uuid
from urllib3 import PoolManager, Retry
origin, key = sys.argv[1:]
retry = Retry(total=6, backoff_factor=0.2, status_forcelist=[429, 500, 502, 503, 504], allowed_methods=None, raise_on_status=False)
http = PoolManager(retries=retry, maxsize=1)
def ask(method, path, body=None):
    headers = {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json', 'Idempotency-Key': str(uuid.uuid4())}
    return http.request(method, origin + path, headers=headers, body=body and json.dumps(body))
def list_all():
    path = '/v1/pets?limit=10'
    while path:
        try:
            reply = ask('GET', path)
        except Exception:
            reply = ask('GET', path)
        link = reply.headers.get('Link', '')
        path = link[1:link.index('>')] if 'rel="next"' in link else None
for round in range(6):
    list_all()
    pet = ask('POST', '/v1/pets', {'name': 'Rex', 'categoryId': round}).json()
    ask('POST', '/v1/store/orders', {'petId': pet['id']})
ask('POST', '/v1/store/orders', {'petId': 9007199254740991})
list_all()
`;

test('Python with urllib3 and its Retry: an A', async (t) => {
  const run = promisify(execFile);
  const version = await run('python3', ['-c', 'import urllib3; print(urllib3.__version__)']).catch(() => undefined);
  if (version === undefined) return t.skip('python3 with urllib3 is not installed');
  const { origin, key, graded } = await start(t);
  await run('python3', ['-c', URLLIB3, origin, key]);
  const { grade, checks } = await graded();
  assert.equal(grade, 'A', JSON.stringify(checks, null, 2));
});
