/** The client: one raw connection to a gateway or a service, with the requests written on it and all replies. */
import net from 'node:net';
import tls from 'node:tls';
import { lived, SLICE_MS } from './lived.ts';
import { isInterim, type Message, methodOf, readMessages, shown, statusOf } from './wire.ts';

/** The longest wait for a connection or a reply, unless a case sets another. */
const WAIT_MS = 3_000;
/** Many times the longest reply of a case. It bounds the work, because each part is parsed with all those before it. */
const MAX_REPLY_BYTES = 256 * 1024;

export interface Address {
  url: string;
  host: string;
  port: number;
  isTls: boolean;
  /** The value of Host. */
  authority: string;
  /** The path in front of every target; mostly empty. */
  prefix: string;
}

export function addressOf(text: string): Address {
  const { protocol, hostname, port, host, pathname } = new URL(text);
  const isTls = protocol === 'https:';
  const prefix = pathname.replace(/\/+$/, '');
  const bare = hostname.replace(/[[\]]/g, '');
  return { url: text, host: bare, port: Number(port) || (isTls ? 443 : 80), isTls, authority: host, prefix };
}

/** The name of a connection, the same for its client and its server. */
export const endsOf = (...ends: [address?: string, port?: number][]): string =>
  ends.map(([address, port]) => `${address?.replace('::ffff:', '')} ${port}`).join(' to ');

/** On loopback no certificate is needed: nobody else can be at the other end. */
const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\./.test(host);

const bytesOf = (messages: readonly Message[]) => messages.reduce((sum, { bytes }) => sum + bytes, 0);

export class Talk {
  /** The requests written so far. */
  requests: Message[] = [];
  /** The replies in order, those of 1xx among them; the last may not be whole. */
  replies: Message[] = [];
  /** Bytes behind them that are not the head of a reply. */
  rest = '';
  /** How the connection ended: `closed`, or the code of the error. */
  ended?: string;
  /** Its two ends: the origin sees the same two if there is no gateway. */
  ends?: string;
  readonly #socket: net.Socket;
  #sent = '';
  #text = '';
  #heard = () => {};

  /** `mayTrustAll`: any certificate will do, since nothing secret is sent. */
  constructor({ host, port, isTls }: Address, mayTrustAll: boolean) {
    const rejectUnauthorized = !mayTrustAll && !isLoopback(host);
    const servername = net.isIP(host) === 0 ? host : undefined;
    this.#socket = isTls
      ? tls.connect({ host, port, servername, rejectUnauthorized, ALPNProtocols: ['http/1.1'] })
      : net.connect(port, host);
    this.#socket.setNoDelay(true).setEncoding('latin1');
    this.#socket.once('connect', () => {
      const { localAddress, localPort, remoteAddress, remotePort } = this.#socket;
      this.ends = endsOf([localAddress, localPort], [remoteAddress, remotePort]);
    });
    this.#socket.on('data', (part: string) => {
      this.#text += part;
      if (this.#text.length > MAX_REPLY_BYTES)
        this.#socket.destroy(new Error(`more than ${MAX_REPLY_BYTES} bytes came`));
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

  /** Resolves with true as soon as `isSo`; with false after `ms` of lived time, or when the connection has ended. */
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

  /** Waits until so many final replies are whole. */
  whole(count: number, ms?: number): Promise<boolean> {
    return this.until(() => this.finals.filter(({ isWhole }) => isWhole).length >= count, ms);
  }

  close(): void {
    this.#socket.destroy();
  }

  /**
   * The bytes behind so many final replies, which a reader must take for a reply to a request that nobody sent. A
   * server may send 408 before it closes an idle connection (RFC 9110 15.5.9).
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

/** The reason why there is no answer: the end of the connection, or bytes that are not HTTP. */
export function unreachable(
  url: string,
  { ended = 'no answer came in time', rest, replies }: Pick<Talk, 'ended' | 'rest' | 'replies'>,
): string {
  const other = `${replies.find((one) => statusOf(one) === 0)?.head ?? ''}${rest}`;
  if (other !== '' && !ended.startsWith('more than'))
    return `cannot reach ${url}: the answer is not HTTP: ${shown(other) || 'empty lines'}`;
  const closed = 'it closes the connection without a reply';
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'connection refused',
    ENOTFOUND: 'there is no such host',
    ECONNRESET: closed,
    closed,
  };
  return `cannot reach ${url}: ${reasons[ended] ?? shown(ended)}`;
}
