/**
 * What may be added to the service. An extra is a folder of `extras/` and a line of `extras/list.ts`; nothing in `src/`
 * knows which there are. What an extra says here is small and always loaded; what it does is imported when it is wanted.
 */
import type { Options } from './operator/options.ts';
import type { PublicEndpoint } from './service/routes.ts';
import type { Engine, EngineOptions, Proof } from './store/engine.ts';

export interface Extra {
  /** Options that `serve` takes too. */
  readonly options?: Options;
  /** What it adds to a server whose store is open. */
  serve?(opening: Opening): Addition | undefined;
  /** Another place for the store than a directory: what `--store URL` names. */
  readonly storage?: Storage;
}

/** A server that is about to open. */
export interface Opening {
  /** The values of all options of `serve`, by name. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Where it listens, such as `http://127.0.0.1:8080`. */
  readonly origin: string;
}

export interface Addition {
  /** Rows of the route table, for everybody: see `staticEndpoint`. */
  readonly endpoints?: readonly PublicEndpoint[];
  /** Lines to print when the server listens, above the key. */
  readonly lines?: readonly string[];
}

export interface Storage {
  /** The schemes of its URLs, such as `/^sql(ite)?$/`. */
  readonly schemes: RegExp;
  /** The form of a URL, for messages. */
  readonly form: string;
  /** Throws an Error with the fault. It repeats no part of the URL, which may hold a password. */
  check(url: string): void | Promise<void>;
  open(url: string, options: EngineOptions): Promise<Engine>;
  /** Fills an empty store from the bytes of a backup, and reads it back. */
  restore(url: string, bytes: AsyncIterable<Uint8Array>): Promise<Proof>;
}
