import { isIPv6, type Server } from 'node:net';
import { CommandError, EXIT } from './exit.ts';
import type { Log } from './logging.ts';

/** As it stands in an address: `[::1]:8080`. */
export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

export function listen(server: Server, at: { host: string; port: number } | { path: string }, log: Log): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be listened on: ${error.message}`;
      const name = 'path' in at ? at.path : hostAndPort(at.host, at.port);
      reject(new CommandError(EXIT.failed, `${name} ${why}`));
    };
    server.once('error', failed);
    server.listen(at, () => {
      server.off('error', failed);
      // Later it is one connection that could not be taken, for want of memory or descriptors: no reason to end.
      server.on('error', (error) => log.error('a connection could not be taken', { error }));
      resolve();
    });
  });
}
