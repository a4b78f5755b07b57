/** Stands between a replica and its database, and cuts the wire at a message. */
import { connect, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

const COMMIT = Buffer.from('COMMIT\0');
const ENDED = Buffer.from('E\0\0\0\x22SFATAL\0C57P01\0Mended by hand\0\0', 'latin1');

/** Gives whole messages of PostgreSQL's protocol. The first that a client sends has no type before its length. */
function messagesOf(side: 'sent' | 'answered') {
  let rest = Buffer.alloc(0);
  let type = side === 'sent' ? 0 : 1;
  return function* (bytes: Buffer) {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= type + 4) {
      const length = type + rest.readInt32BE(type);
      if (rest.length < length) return;
      yield rest.subarray(0, length);
      rest = rest.subarray(length);
      type = 1;
    }
  };
}

/**
 * before: the message does not pass. behind: it passes. ended: the database says behind its answer that somebody has
 * ended the connection. silent: from then on nothing passes, and nothing is closed, as when a host has vanished.
 */
export type Cut = 'before' | 'behind' | 'ended' | 'silent';

export class WireProxy {
  /** Every message is one; the one that makes it 0 is where the wire is cut. */
  left = Number.POSITIVE_INFINITY;
  how: Cut = 'before';
  isSilent = false;
  /** The answers to the next COMMIT wait until `release`. */
  holdsCommit = false;
  release = () => {};
  /** Where the database is. */
  target: number;
  #isDown = false;
  readonly #sockets = new Set<Socket>();

  constructor(target: number) {
    this.target = target;
  }

  async listen(t: Pick<TestContext, 'after'>): Promise<number> {
    const server = createServer({ noDelay: true }, (client) => {
      if (this.#isDown) return void client.destroy();
      const database = connect({ port: this.target, host: '127.0.0.1', noDelay: true });
      const connection: { held?: Promise<void> } = {};
      this.#pass('sent', client, database, connection);
      this.#pass('answered', database, client, connection);
      for (const one of [client, database]) this.#sockets.add(one.on('close', () => this.#sockets.delete(one)));
    });
    t.after(() => {
      server.close();
      this.isDown = true;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as { port: number }).port;
  }

  /** Connections end, and no new one is made. */
  set isDown(isDown: boolean) {
    this.#isDown = isDown;
    if (isDown) for (const socket of this.#sockets) socket.destroy();
  }

  #pass(side: 'sent' | 'answered', from: Socket, to: Socket, connection: { held?: Promise<void> }): void {
    const cut = () => {
      for (const one of [from, to]) one.destroy();
    };
    const messages = messagesOf(side);
    from.on('error', cut).on('close', cut);
    from.on('data', async (bytes) => {
      if (side === 'answered') await connection.held;
      for (const message of messages(bytes)) {
        if (this.holdsCommit && side === 'sent' && message.includes(COMMIT)) {
          this.holdsCommit = false;
          connection.held = new Promise((resolve) => (this.release = resolve));
        }
        if (--this.left === 0 && this.how === 'silent') this.isSilent = true;
        if (this.isSilent || to.destroyed) return;
        if (this.left !== 0) to.write(message);
        else if (this.how === 'before') return cut();
        else {
          to.write(this.how === 'ended' && side === 'answered' ? Buffer.concat([message, ENDED]) : message);
          setTimeout(cut, 1);
        }
      }
    });
  }
}
