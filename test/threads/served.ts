/** What tests of `serve --threads` have in common. */
import { Agent, request } from 'node:http';
import type { TestContext } from 'node:test';

const [major, minor] = process.versions.node.split('.').map(Number);
const isNew = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
/** Why `--threads 3` cannot be tried here. The single binary brings its own Node. */
export const NO_THREADS: string | false =
  process.platform === 'linux' && (isNew || process.env.PETSTORE_TEST_PROGRAM !== undefined)
    ? false
    : `--threads needs Linux and Node 22.12 or newer; this is ${process.platform}, Node ${process.versions.node}`;

export interface Told {
  status: number;
  headers: Record<string, string | undefined>;
  body: string;
}

export type Ask = (
  method: string,
  path: string,
  options?: { key?: string; body?: unknown; once?: string },
) => Promise<Told>;

/** So many connections, each of its own: the kernel spreads them over the threads. They are closed with the test. */
export function connect(t: TestContext, url: string, count: number): Ask[] {
  return Array.from({ length: count }, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    return (method, path, { key, body, once } = {}) => {
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (key !== undefined) headers.authorization = `Bearer ${key}`;
      if (once !== undefined) headers['idempotency-key'] = once;
      return new Promise((resolve, reject) => {
        const req = request(url + path, { method, headers, agent }, (res) => {
          let text = '';
          res.setEncoding('utf8').on('data', (part: string) => (text += part));
          res.on('end', () => {
            resolve({ status: res.statusCode!, headers: res.headers as Told['headers'], body: text });
          });
          res.on('error', reject);
        });
        req.on('error', reject);
        req.end(body === undefined ? undefined : JSON.stringify(body));
      });
    };
  });
}
