/** What a command is, and how it is performed: arguments are checked, its work is done, its result is printed. */
import { type Clock, systemClock } from '../clock.ts';
import type { Extra } from '../extra.ts';
import type { Engine } from '../store/engine.ts';
import type { Environment } from '../store/model.ts';
import { readArguments, type Usage, usageError } from './arguments.ts';
import { asCommandError, CommandError, EXIT } from './failures.ts';
import { openForCommand, retryWhileInUse, storageOf } from './opening.ts';
import { type Location, type Options, storeName, type Values } from './options.ts';
import { inWords, note, print, printRaw } from './output.ts';
import { callServer } from './socket-client.ts';

/** What the work of a command has, in the running server or in a process of its own. */
export interface Context {
  engine: Engine;
  clock: Clock;
  /** The environment whose keys the server accepts; without a server: production. */
  environment: Environment;
  /** When the newest backup of this process was complete (ms since 1970). */
  lastBackupAt?: number;
}

/** The commands of this program, and what it has beside the service. */
export interface Program {
  readonly commands: readonly AnyCommand[];
  readonly extras: readonly Extra[];
}

/** Takes output as it comes; false: nobody reads it any more. */
export type Sink = (chunk: string | Uint8Array) => Promise<boolean>;
/** Output as it comes, then the result. */
export type Streaming<R> = AsyncGenerator<string | Uint8Array, R>;

/**
 * `work` runs where the store is open: in the running server, or in this process if none runs. `run` always runs in this
 * process; without it, the command is one call of `work`. `W`: what `work` takes, by default the values of the options.
 */
export interface Command<
  A extends Options = Options,
  O extends Options = Options,
  W = Values<A & O>,
  R = unknown,
  P = R,
> extends Usage<A, O> {
  work?(context: Context, values: W): R | Promise<R> | Streaming<R>;
  run?(values: Values<A & O>, call: (values: W, sink?: Sink) => Promise<R>, program: Program): P | Promise<P>;
  /** How the store is opened: only to read, to change it, or making one where there is none. */
  access?: 'read' | 'write' | 'create';
  /** Whether the running server logs this call. By default it logs each that may change the store. */
  isLogged?(values: W): boolean;
  /** True: this process opens the store by itself, also beside a running server. */
  isAlone?: boolean;
  /** True: it runs until a signal, which it handles itself. */
  isServer?: boolean;
  /** The result for people, if a list of its members is not enough. `--json` prints it as it is. */
  words?(result: P): string;
}

// biome-ignore lint/suspicious/noExplicitAny: the commands of a list have types of their own, which `command` checks
export type AnyCommand = Command<any, any, any, any, any>;

export const command = <A extends Options, O extends Options, W = Values<A & O>, R = unknown, P = R>(
  command: Command<A, O, W, R, P>,
): AnyCommand => command;

export async function perform(
  command: AnyCommand,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  program: Program,
): Promise<void> {
  const values = readArguments(command, words, env) as Location & { maxStoreMb?: number; json?: boolean };
  if (values.store !== undefined) await checkUrl(command, values.store, words, program);
  let engine: Engine | undefined;
  const call = (given: unknown, sink: Sink = printRaw) =>
    retryWhileInUse(async () => {
      if (engine === undefined && values.store === undefined && !command.isAlone) {
        const reply = await callServer(values.data, { command: command.name, values: given }, sink);
        if (reply !== undefined) return reply.result;
      }
      engine ??= await openForCommand(values, command.access ?? 'read', program.extras);
      return finish(command.work?.({ engine, clock: systemClock, environment: 'production' }, given), sink);
    });
  if (!command.isServer) exitOnSignals(command.name);
  try {
    const result = await (command.run ? command.run(values, call, program) : call(values));
    if (result !== undefined) await printResult(command, result, values.json === true);
    await engine?.close();
  } catch (error) {
    await engine?.close().catch(() => {}); // the first failure is reported, not this one
    throw asCommandError(error, storeName(values)) ?? error;
  }
}

/** The result of a work. Its output goes to `sink`; if nobody reads that any more, the work ends, without a result. */
export async function finish(work: unknown, sink: Sink): Promise<unknown> {
  if (!isStreaming(work)) return work;
  for (;;) {
    const { done, value } = await work.next();
    if (done) return value;
    if (!(await sink(value as string | Uint8Array))) return void (await work.return(undefined));
  }
}

export const isStreaming = (work: unknown): work is Streaming<unknown> =>
  typeof work === 'object' && work !== null && Symbol.asyncIterator in work;

function exitOnSignals(name: string): void {
  const exit = () => note(`petstore ${name} was interrupted`).then(() => process.exit(EXIT.failed));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, exit);
}

/** Before the store is closed, so that a new key is printed even if closing fails. */
async function printResult({ name, words = inWords, access = 'read' }: AnyCommand, result: object, isJson: boolean) {
  const { id } = result as { id?: string };
  const doneBut = (why: string) => new CommandError(EXIT.failed, `${name} was done${id ? ` (${id})` : ''}, but ${why}`);
  const isRead = await print(isJson ? JSON.stringify(result, null, 2) : words(result)).catch((error) => {
    throw access === 'read' ? error : doneBut(error.message);
  });
  if (!isRead && access !== 'read') throw doneBut('nobody read the result');
}

/** What reads the URL is loaded only where there is one. */
async function checkUrl(command: AnyCommand, url: string, words: readonly string[], { extras }: Program) {
  try {
    await storageOf(url, extras).check(url);
  } catch (error) {
    const isOption = words.some((word) => /^--store(=|$)/.test(word));
    throw usageError(command, (error as Error).message.replace('--store', isOption ? '--store' : 'PETSTORE_STORE'));
  }
}
