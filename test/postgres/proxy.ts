/** Between a replica and its database: knows where messages of PostgreSQL's protocol end, and cuts at any of them. */
import { connect, createServer, type Server, type Socket } from 'node:net';

type Side = 'sent' | 'answered';

/** Gives whole messages of one direction. The first that a client sends has no type before its length. */
class Messages {
  #rest = Buffer.alloc(0);
  #isFirst: boolean;

  constructor(side: Side) {
    this.#isFirst = side === 'sent';
  }

  *of(bytes: Buffer): Generator<Buffer> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const type = this.#isFirst ? 0 : 1;
      if (this.#rest.length < type + 4) return;
      const length = type + this.#rest.readInt32BE(type);
      if (this.#rest.length < length) return;
      yield this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      this.#isFirst = false;
    }
  }
}

export class WireProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Every message is one; the one that makes it 0 is the last that passes, or the first that does not. */
  #left = Number.POSITIVE_INFINITY;
  #passesLast = false;
  messages = 0;
  /** Nothing passes any more, and nothing is closed: as when a host has vanished. */
  isSilent = false;

  constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#pass(client));
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return (this.#server.address() as { port: number }).port;
  }

  /** The connection over which the message comes is cut before it, or right behind it. Once. */
  cutAt(message: number, passesLast: boolean): void {
    this.#left = message;
    this.#passesLast = passesLast;
    this.messages = 0;
  }

  get wasCut(): boolean {
    return this.#left <= 0;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #pass(client: Socket): void {
    const server = connect(this.#target, '127.0.0.1');
    const cut = () => {
      client.destroy();
      server.destroy();
    };
    for (const [side, from, to] of [
      ['sent', client, server],
      ['answered', server, client],
    ] as const) {
      const messages = new Messages(side);
      this.#sockets.add(from);
      from.on('error', cut).on('close', cut);
      from.on('data', (bytes) => {
        for (const message of messages.of(bytes)) {
          if (this.isSilent || to.destroyed) return;
          this.messages++;
          const isCut = --this.#left === 0;
          if (!isCut || this.#passesLast) to.write(message);
          if (!isCut) continue;
          if (this.#passesLast) setTimeout(cut, 1);
          else return cut();
        }
      });
    }
  }
}
