/** `petstore ready`: for places that have neither curl nor a shell, such as the health check of a container. */
import { get } from 'node:http';
import { command } from './command.ts';
import { integer, option, SERVE_OPTIONS } from './options.ts';
import { reachable, reachableHost } from './sockets.ts';

const MAX_ANSWER_MS = 2_500;

export const READY = command({
  name: 'ready',
  does: 'ask the service on this machine whether it serves requests; exit 1 if not',
  more: 'Asks /readyz, at the address of a serve with the same options or variables.',
  options: {
    host: { ...SERVE_OPTIONS.host, help: 'address of the service' },
    port: option(integer(1, 65_535), 'N', 'port of the service', '8080'),
  },
  run: async ({ host, port }): Promise<object> => {
    const at = `http://${reachable(host, port)}/readyz`;
    const status = await statusOf(reachableHost(host), port).catch(({ code, message }: NodeJS.ErrnoException) => {
      if (code !== 'ECONNREFUSED') return message;
      throw new Error(`cannot reach ${at}: connection refused`);
    });
    if (status === 200) return { ready: at };
    throw new Error(`${at} is not ready: ${status}`);
  },
});

/** Not by a URL, nor with such a `Host`: neither can name the interface of an address (`fe80::1%eth0`). */
function statusOf(host: string, port: number): Promise<number | undefined> {
  const headers = { Host: reachable(host.replace(/%.*$/, ''), port) };
  const asked = { host, port, path: '/readyz', headers, agent: false, timeout: MAX_ANSWER_MS };
  return new Promise((resolve, reject) => {
    const late = () => req.destroy(new Error('no answer in time'));
    const req = get(asked, (res) => resolve(res.resume().statusCode));
    req.on('timeout', late).on('error', reject);
  });
}
