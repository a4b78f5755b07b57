/**
 * Two threads that ask each other. All questions of one turn of the event loop leave in one message, and so do the
 * answers: waking another thread costs more than the text.
 */
import type { MessagePort, Worker } from 'node:worker_threads';

/** `ask`: the name of the question; without it, this is the answer to the question of that number. */
interface Message {
  number: number;
  ask?: string;
  value?: unknown;
  error?: unknown;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class Line {
  readonly #port: Worker | MessagePort;
  readonly #waiting = new Map<number, Waiting>();
  #asked = 0;
  #leaving: Message[] = [];

  /** `answers`: the questions that the other thread may ask, and who answers each. */
  constructor(port: Worker | MessagePort, answers: Record<string, (value: never) => unknown>) {
    this.#port = port;
    const take = ({ number, ask, value, error }: Message) => {
      if (ask === undefined) return this.#hear(number, value, error);
      const answer = async () => answers[ask](value as never);
      answer().then(
        (value) => this.#post({ number, value }),
        (error) => this.#post({ number, error }),
      );
    };
    port.on('message', (messages: Message[]) => messages.forEach(take));
  }

  ask<R>(ask: string, value?: unknown): Promise<R> {
    return new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(++this.#asked, { resolve, reject });
      this.#post({ number: this.#asked, ask, value });
    }) as Promise<R>;
  }

  #hear(number: number, value: unknown, error: unknown): void {
    const { resolve, reject } = this.#waiting.get(number) as Waiting;
    this.#waiting.delete(number);
    if (error === undefined) resolve(value);
    else reject(error);
  }

  #post(message: Message): void {
    if (this.#leaving.push(message) > 1) return;
    setImmediate(() => this.#port.postMessage(this.#leaving.splice(0)));
  }
}
