/**
 * A small gateway that does all as it should: it streams both ways, refuses what is ambiguous, takes away what is for one
 * hop, adds to X-Forwarded-For and repeats nothing. Each `Fault` makes it do one thing otherwise.
 */
import net, { type AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { isInterim, type Message, methodOf, readMessage } from '../../src/probe/wire.ts';

export interface Fault {
  /** Of the request: its lines, the first among them, without the end. */
  head?(lines: string[]): string[];
  /** Of a body: its bytes, with their framing. */
  body?(bytes: string): string;
  /** Of the final reply. */
  replyHead?(lines: string[]): string[];
  replyBody?(bytes: string): string;
  /** A status of its own, on all connections but the first: for the request with this number on its connection, or for all. */
  own?: { status: string; at?: number };
  /** Passes on every byte as it is. */
  isRaw?: boolean;
  /** Passes on a request when all of it is there. */
  buffers?: boolean;
  /** How often a request without a reply is sent. */
  tries?: number;
  /** How often each request is sent. */
  copies?: number;
  /** What comes behind a whole reply, and how long after it. */
  behind?(reply: string): string;
  behindMs?: number;
  /** The reply as it is written, its status line and body with it. */
  rewrite?(reply: string): string;
  /** Makes plain what is ambiguous, where it should be refused or may be: its head. */
  mends?(head: string): string;
  /** Sends each request once more, on a connection whose reply nobody hears. */
  again?: boolean;
  /** How a reply that was cut off is made whole. */
  completes?(reply: string): string;
  /** Gives the first reply of the connection to each request. */
  mixes?: boolean;
  /** Gives a reply again, to whoever asks for its target. */
  keeps?: Map<string, string>;
  /** Has one connection to the origin, for all clients in turn, whatever the last one left half sent. */
  isOne?: boolean;
  /** Answers in HTTP/1.0 and ends the connection. */
  isOld?: boolean;
  delayMs?: number;
  /** Says nothing on connections after so many. */
  silentAfter?: number;
  /** Takes the request with this number on its connection, and does no more. */
  hangsAt?: number;
  /** Closes them all and listens no longer, when so many came. */
  diesAfter?: number;
  /** Closes those after so many at once. */
  closesAfter?: number;
}

/** What has come on a socket, and whether more will. */
class Wire {
  text = '';
  isEnded = false;
  readonly socket: net.Socket;
  readonly #waiting = new Set<() => void>();

  constructor(socket: net.Socket) {
    this.socket = socket;
    const heard = () => {
      for (const wake of this.#waiting) wake();
    };
    const end = () => {
      this.isEnded = true;
      heard();
    };
    socket
      .setNoDelay(true)
      .setEncoding('latin1')
      .on('error', () => {})
      .on('close', end)
      .on('end', end);
    socket.on('data', (part) => {
      this.text += part;
      heard();
    });
  }

  write(bytes: string): void {
    if (this.socket.writable) this.socket.write(bytes, 'latin1');
  }

  /** Until it is so, or the other side has ended. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo() && !this.isEnded) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }
}

const headOf = (lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`;
const ownReply = (status: string) => headOf([`HTTP/1.1 ${status}`, 'Content-Length: 0', 'Connection: close']);
const bodyAt = (text: string) => text.indexOf('\r\n\r\n') + 4;

export async function proxyFor(t: TestContext, origin: number, fault: Fault = {}): Promise<string> {
  const sockets = new Set<net.Socket>();
  const connect = () => {
    const [only] = fault.isOne ? [...sockets].filter(({ remotePort }) => remotePort === origin) : [];
    if (only !== undefined) return only;
    const socket = net.connect(origin, '127.0.0.1');
    if (fault.isOne) socket.destroy = () => socket; // it ends when the origin ends it
    sockets.add(socket);
    return socket;
  };
  let connections = 0;
  const server = net.createServer({ allowHalfOpen: true }, async (socket) => {
    sockets.add(socket);
    const isFirst = ++connections === 1;
    if (connections > (fault.diesAfter ?? connections)) {
      server.close();
      for (const one of sockets) one.destroy();
    } else if (connections > (fault.closesAfter ?? connections)) socket.on('error', () => {}).destroy();
    else if (connections > (fault.silentAfter ?? connections)) socket.on('error', () => {}).resume();
    else if (fault.isRaw) {
      const upstream = connect().on('error', () => socket.destroy());
      socket
        .on('error', () => {})
        .pipe(upstream)
        .pipe(socket);
    } else await serve(new Wire(socket), connect, isFirst ? { ...fault, own: undefined } : fault);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function serve(client: Wire, connect: () => net.Socket, fault: Fault): Promise<void> {
  let upstream: Wire | undefined;
  const first: string[] = [];
  client.socket.on('close', () => upstream?.socket.destroy());
  for (let count = 1; ; count++) {
    await client.until(() => readMessage(client.text) !== undefined);
    const request = readMessage(client.text);
    if (request === undefined) break;
    if (request.faults.length > 0 && !fault.mends) {
      const refusal = ownReply('400 Bad Request');
      return void client.socket.end(refusal + (fault.behind?.(refusal) ?? ''));
    }
    if (fault.buffers && /^expect:/im.test(request.head)) client.write('HTTP/1.1 100 Continue\r\n\r\n');
    if (fault.buffers) await client.until(() => readMessage(client.text)!.isWhole);
    if (fault.hangsAt === count) return;
    const { own } = fault;
    if (own && (own.at ?? count) === count) return void client.socket.end(ownReply(own.status));
    const keptReply = fault.keeps?.get(request.line);
    if (keptReply !== undefined) return void client.socket.end(keptReply);
    if (fault.delayMs) await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
    for (let tries = 1; ; tries++) {
      if (upstream === undefined || upstream.isEnded) upstream = new Wire(connect());
      upstream.text = '';
      const isKept = await pass(request, client, [upstream, connect], fault, first);
      if (isKept) break;
      upstream.socket.destroy();
      if (isKept === undefined && tries < (fault.tries ?? 1)) continue;
      if (isKept === undefined) client.socket.end(ownReply('502 Bad Gateway'));
      return;
    }
    client.text = client.text.slice(readMessage(client.text)!.bytes);
    if (fault.isOld) break;
  }
  client.socket.end();
}

/** Whether both connections can go on; undefined where no byte of a reply has come. */
async function pass(
  request: Message,
  client: Wire,
  [upstream, connect]: [Wire, () => net.Socket],
  fault: Fault,
  first: string[],
) {
  let sent = 0;
  const more = () => {
    const now = readMessage(client.text)!;
    const body = client.text.slice(bodyAt(client.text), now.bytes);
    if (fault.body && !now.isWhole) return false;
    const bytes = fault.body?.(body) ?? body;
    if (fault.again && now.isWhole) new Wire(connect()).write(requestHead(request, fault) + bytes);
    upstream.write(bytes.slice(sent));
    sent = bytes.length;
    return now.isWhole || now.faults.length > 0;
  };
  for (let copy = 0; copy < (fault.copies ?? 1); copy++) upstream.write(requestHead(request, fault));
  void client.until(more);
  const isChanged =
    [fault.replyHead, fault.replyBody, fault.rewrite, fault.completes].some((one) => one) || fault.mixes || fault.isOld;
  let given = 0;
  await upstream.until(() => {
    const found = finalOf(upstream.text, methodOf(request));
    if (!isChanged) client.write(upstream.text.slice(given));
    given = upstream.text.length;
    return found?.message.isWhole === true || (!fault.mends && readMessage(client.text)!.faults.length > 0);
  });
  if (upstream.text === '') return undefined;
  const found = finalOf(upstream.text, methodOf(request));
  const isWhole = found !== undefined && (found.message.isWhole || found.message.framing === 'close');
  if (fault.mixes) first.push(upstream.text);
  if (isWhole) fault.keeps?.set(request.line, upstream.text);
  if (isChanged && found) client.write(fault.mixes ? first[0] : changed(upstream.text, found.from, isWhole, fault));
  if (isWhole && fault.behind && found) {
    const surplus = fault.behind(upstream.text.slice(found.from));
    if (fault.behindMs) await new Promise((resolve) => setTimeout(resolve, fault.behindMs));
    client.write(surplus);
  }
  if (!isWhole && !fault.completes) client.socket.destroy();
  else if (!found?.message.isWhole || !readMessage(client.text)!.isWhole) client.socket.end();
  return found?.message.isWhole === true && readMessage(client.text)!.isWhole;
}

/** The final reply behind those of 1xx. */
function finalOf(text: string, method: string): { message: Message; from: number } | undefined {
  for (let from = 0; ; ) {
    const message = readMessage(text.slice(from), method);
    if (message === undefined || !isInterim(message)) return message && { message, from };
    from += message.bytes;
  }
}

function changed(text: string, from: number, isWhole: boolean, fault: Fault): string {
  const [at, final] = [bodyAt(text.slice(from)), text.slice(from)];
  if (!isWhole && fault.completes) return fault.completes(final);
  const lines = final.slice(0, at - 4).split('\r\n');
  const head = fault.replyHead?.(lines) ?? lines;
  if (fault.isOld) head[0] = head[0].replace('HTTP/1.1', 'HTTP/1.0');
  const reply = headOf(head) + (fault.replyBody?.(final.slice(at)) ?? final.slice(at));
  return text.slice(0, from) + (fault.rewrite?.(reply) ?? reply);
}

function requestHead({ head: asked }: Message, fault: Fault): string {
  const head = fault.mends?.(asked) ?? asked;
  const named = (/^connection: *(.*)$/im.exec(head)?.[1] ?? '').toLowerCase().split(/ *, */);
  const nameOf = (line: string) => line.split(':')[0].toLowerCase();
  const lines = head.split('\r\n').filter((line) => nameOf(line) !== 'connection' && !named.includes(nameOf(line)));
  const told = lines.map((line) => (nameOf(line) === 'x-forwarded-for' ? `${line}, 127.0.0.1` : line));
  return headOf(fault.head?.(told) ?? told);
}
