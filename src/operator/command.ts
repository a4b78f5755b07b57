/** A command: its options, its call where the store is, and the way its result is printed. */
import { Readable } from 'node:stream';
import { type Clock, systemClock } from '../clock.ts';
import type { Engine } from '../engine.ts';
import type { Lab } from '../lab/lab.ts';
import type { Environment } from '../store/model.ts';
import { read, refusalOf, type Spec, type Variables } from './arguments.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import { openHere, triedWhileInUse } from './opening.ts';
import { type Options, type Place, placeWords, shownPlace, type Values } from './options.ts';
import { inWords, isDiscarded, print, told } from './output.ts';
import { askServer, type Io } from './reach.ts';

/** The first argument of the call of a command, in the running server and without one. */
export interface Context {
  engine: Engine;
  clock: Clock;
  /** The environment whose keys the server accepts; for a store without a server: production. */
  environment: Environment;
  /** How the client of a key behaved, where a lab is served. */
  lab?: Pick<Lab, 'grade'>;
}

/** `A`: the result of its call; `R`: the result printed. The function `command` lets all three types be inferred. */
interface Command<O extends Options = Options, A = unknown, R = A> extends Spec<O> {
  /** The work in the process that has the store: the same function in the running server and without one. */
  call?(context: Context, values: Values<O>, io: Io): A | Promise<A>;
  /** True if its call changes nothing: it works on a read-only mount. */
  reads?: boolean;
  /** True if its call is given up at a signal, with a message. */
  isGivenUp?: boolean;
  /** True if a signal in the middle may leave a part of its work behind: then a sentence says so. */
  leavesParts?: boolean;
  /** True if its call is for a running server alone: without one, nothing is done. */
  isForServer?: boolean;
  /** True if its call begins a store where there is none. */
  makes?: boolean;
  /** For a result that is printed only once: the loss if nobody could read it, and the advice. */
  unread?(result: A, at: string): string;
  /** The work in the process of the command; if not given, its call alone. `ask` does the call. */
  run?(values: Values<O>, ask: (io?: Partial<Io>) => Promise<A>): R | Promise<R>;
  /** The result for people, if a plain list of its members is not enough. `--json` prints it as it is. */
  words?(result: R): string;
}

export type Calls = readonly Command[];

export const command = <O extends Options, A = undefined, R = A>(command: Command<O, A, R>): Command =>
  command as Command;

/** Refuses wrong words before it touches anything, and ends well only where all was done, told and closed. */
export async function perform(command: Command, words: readonly string[], variables: Variables): Promise<void> {
  const values = read(command, words, variables);
  const place = values as Place & { maxStoreMb?: number }; // not every command has these options; the others do not ask
  if (place.store !== undefined) await refuseWrongUrl(command, place.store);
  const at = placeWords(place);
  const opened: Engine[] = [];
  const ask = (given: Partial<Io> = {}) =>
    triedWhileInUse(async () => {
      const io = { input: Readable.from([]), tell: print, ...given };
      const answer = !place.store && (await askServer(place.data, command.name, { words, variables }, io));
      if (answer) return answer.result;
      if (command.isForServer) return undefined;
      opened.push(await openHere(place, command));
      return command.call?.({ engine: opened[0], clock: systemClock, environment: 'production' }, values, io);
    });
  const close = () => Promise.all(opened.map((engine) => engine.close()));
  const leave = async (): Promise<never> => {
    await told(`${command.name} was interrupted: look before you repeat it\n`);
    process.exit(EXIT.failed);
  };
  // A call in this process reports that it was not done; about a call in the server nothing is known.
  const giveUp = () => (opened.length > 0 ? opened[0].upkeep.giveUp?.() : leave());
  const onSignal = command.isGivenUp ? giveUp : command.leavesParts ? leave : undefined;
  if (onSignal) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, onSignal);
  try {
    await tellResult(command, await (command.run ?? ((_, ask) => ask()))(values, ask), values.json === true, at);
  } catch (error) {
    await close().catch(() => {}); // the first failure is reported, not this one
    throw asCommandError(error, shownPlace(place)) ?? error;
  }
  await close().catch((error) => {
    const { message } = asCommandError(error, shownPlace(place)) ?? error;
    throw new CommandError(EXIT.failed, `this was done, but the store could not be closed: ${message}`);
  });
}

/** Of `--store`. What reads that URL is loaded only where there is one. */
async function refuseWrongUrl(command: Command, store: string): Promise<void> {
  const { serverOf } = await import('../postgres/server.ts');
  try {
    serverOf(store);
  } catch (error) {
    throw refusalOf(command)((error as Error).message);
  }
}

/** Runs before the store is closed, so that the result is printed even if closing fails. */
async function tellResult(
  { words = inWords, unread }: Command,
  result: unknown,
  isJson: boolean,
  at: string,
): Promise<void> {
  if (result === undefined) return;
  const advice = unread?.(result, at);
  const failed = (why: string) => new CommandError(EXIT.failed, `${why || 'nobody read the output'}; ${advice}`);
  await print(isJson ? JSON.stringify(result, null, 2) : words(result)).catch((error: CommandError) => {
    if (advice !== undefined) throw failed(error.message);
    throw error.message === '' ? error : new CommandError(EXIT.failed, `${error.message}; all else was done`);
  });
  if (unread !== undefined && isDiscarded()) throw failed('');
}
