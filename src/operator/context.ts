/** What the call of a command is given: in the running server, and without one. */
import type { Clock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Lab } from '../lab/lab.ts';
import type { Environment } from '../store/model.ts';

export interface Context {
  engine: Engine;
  clock: Clock;
  /** Which keys the server accepts; for a store without a server: production. */
  environment: Environment;
  /** How the client of a key behaved, where a lab is served. */
  grade?: Lab['grade'];
}

/** What the process of a command gives to its call, and is told by it: lines in, lines out; the result is the last. */
export interface Io {
  /** Each line, with or without its end; undefined where one is too long. */
  input: AsyncIterable<Buffer | undefined>;
  /** Resolves when it was taken, and lets others have a turn when much is told. */
  tell(line: string): Promise<void>;
}
