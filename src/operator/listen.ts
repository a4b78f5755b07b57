import type { Server } from 'node:http';
import { isIPv6 } from 'node:net';
import { CommandError, EXIT } from './exit.ts';

/** As it stands in an address: `[::1]:8080`. */
export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

export function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE' ? 'is in use by another program' : `cannot be listened on: ${error.message}`;
      reject(new CommandError(EXIT.failed, `${hostAndPort(host, port)} ${why}`));
    });
    server.listen(port, host, resolve);
  });
}
