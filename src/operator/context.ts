/** What the call of a command is given: in the running server, and without one. */
import type { Clock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Lab } from '../lab/lab.ts';
import type { Environment } from '../store/model.ts';
import type { Said } from './arguments.ts';

/** What a call works on: in the running server, or in a process that has opened the store itself. */
export interface Context {
  engine: Engine;
  clock: Clock;
  /** Which keys the server accepts; for a store without a server: production. */
  environment: Environment;
  /** How the client of a key behaved, where a lab is served. */
  grade?: Lab['grade'];
}

/** Lines in, lines out; the result is the last. */
export interface Io {
  /** Each line of what the command was given; undefined where one is too long. */
  input: AsyncIterable<Buffer | undefined>;
  /** Resolves when it was taken, and lets others have a turn when much is told. */
  tell(line: string): Promise<void>;
}

/** What a command does where the store is. The same function runs in the server and without one. */
export interface Call {
  reads: boolean;
  run(context: Context, said: Said, io: Io): Promise<unknown>;
}

/** By the name of the command. */
export type Calls = ReadonlyMap<string, Call>;
