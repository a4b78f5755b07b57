/** The client: one raw connection to a gateway or a service, what was written on it, and all replies that came. */
import net from 'node:net';
import tls from 'node:tls';
import { lived, SLICE_MS } from './lived.ts';
import { isInterim, type Message, methodOf, readMessages, shown, statusOf } from './wire.ts';

/** For one connection, and for one reply, where no case says otherwise. */
const WAIT_MS = 3_000;
const MAX_REPLY_BYTES = 8 * 1024 * 1024;

export interface Address {
  url: string;
  host: string;
  port: number;
  isTls: boolean;
  /** As it stands in Host. */
  authority: string;
  /** The path before every target; mostly empty. */
  prefix: string;
}

export function addressOf(text: string): Address {
  const { protocol, hostname, port, host, pathname } = new URL(text);
  const isTls = protocol === 'https:';
  const prefix = pathname.replace(/\/+$/, '');
  const bare = hostname.replace(/[[\]]/g, '');
  return { url: text, host: bare, port: Number(port) || (isTls ? 443 : 80), isTls, authority: host, prefix };
}

/** The end of a loopback connection is nobody else's, whatever certificate it shows. */
const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\./.test(host);

const bytesOf = (messages: readonly Message[]) => messages.reduce((sum, { bytes }) => sum + bytes, 0);

export class Talk {
  /** The requests, as far as they are written. */
  requests: Message[] = [];
  /** The replies in order, those of 1xx among them; the last may not be whole. */
  replies: Message[] = [];
  /** What came behind them, and is not even the head of a reply. */
  rest = '';
  /** How the connection ended: `closed`, or the code of the error. */
  ended?: string;
  /** The local port: the origin sees it where nothing stands between. */
  port = 0;
  readonly #socket: net.Socket;
  #sent = '';
  #text = '';
  #heard = () => {};

  /** `mayTrustAll`: nothing secret is sent. */
  constructor({ host, port, isTls }: Address, mayTrustAll: boolean) {
    const rejectUnauthorized = !mayTrustAll && !isLoopback(host);
    const servername = net.isIP(host) === 0 ? host : undefined;
    this.#socket = isTls
      ? tls.connect({ host, port, servername, rejectUnauthorized, ALPNProtocols: ['http/1.1'] })
      : net.connect(port, host);
    this.#socket.setNoDelay(true).setEncoding('latin1');
    this.#socket.once('connect', () => (this.port = this.#socket.localPort ?? 0));
    this.#socket.on('data', (part: string) => {
      this.#text += part;
      if (this.#text.length > MAX_REPLY_BYTES) this.#socket.destroy();
      this.#read();
    });
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      this.ended ??= error.code ?? error.message;
      this.#heard();
    });
    this.#socket.on('close', () => {
      this.ended ??= 'closed';
      this.#read();
    });
    this.#socket.on('end', () => this.#socket.end());
  }

  /** The final replies. */
  get finals(): Message[] {
    return this.replies.filter((one) => !isInterim(one));
  }

  get sent(): string {
    return this.#sent;
  }

  write(text: string): void {
    this.#sent += text;
    this.requests = readMessages(this.#sent);
    if (this.#socket.writable) this.#socket.write(text, 'latin1');
  }

  /** Whether it came to be so; false once this process has lived so long, or when the connection has ended. */
  async until(isSo: () => boolean, ms = WAIT_MS): Promise<boolean> {
    for (const overAt = lived() + ms; !isSo() && this.ended === undefined && lived() < overAt; ) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, SLICE_MS);
        this.#heard = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return isSo();
  }

  /** Until so many final replies are whole. */
  whole(count: number, ms?: number): Promise<boolean> {
    return this.until(() => this.finals.filter(({ isWhole }) => isWhole).length >= count, ms);
  }

  close(): void {
    this.#socket.destroy();
  }

  /**
   * The bytes behind so many final replies, which no reader can take for anything but a reply to what nobody asked. A
   * server may say 408 before it closes an idle connection: RFC 9110 15.5.9.
   */
  surplus(count: number): string {
    const last = this.finals[count - 1];
    if (!last?.isWhole) return '';
    const whole = this.replies.slice(0, this.replies.indexOf(last) + 1);
    const text = this.#text.slice(bytesOf(whole));
    const [first] = readMessages(text, ['GET']);
    const isFarewell = first !== undefined && statusOf(first) === 408 && first.bytes === text.length;
    return isFarewell && this.ended !== undefined ? '' : text;
  }

  #read(): void {
    this.replies = readMessages(this.#text, this.requests.map(methodOf));
    const last = this.replies.at(-1);
    if (last?.framing === 'close' && this.ended === 'closed') last.isWhole = true;
    this.rest = this.#text.slice(bytesOf(this.replies));
    this.#heard();
  }
}

/** Why nobody answers, as the connection ended, or by what came in place of HTTP. */
export function unreachable(
  url: string,
  { ended = 'no answer came in time', rest, replies }: Pick<Talk, 'ended' | 'rest' | 'replies'>,
): string {
  const other = `${replies.find((one) => statusOf(one) === 0)?.head ?? ''}${rest}`;
  if (other !== '') return `cannot reach ${url}: what comes is no HTTP: ${shown(other)}`;
  const closed = 'it closes the connection without a reply';
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'connection refused',
    ENOTFOUND: 'there is no such host',
    ECONNRESET: closed,
    closed,
  };
  return `cannot reach ${url}: ${reasons[ended] ?? shown(ended)}`;
}
