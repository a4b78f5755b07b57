/** What a command is, and how it is performed: by the running server, or where none runs on the store itself. */
import { setTimeout as wait } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { type Clock, systemClock } from '../clock.ts';
import type { Extra, Storage } from '../extra.ts';
import { type Engine, type EngineOptions, InUseError } from '../store/engine.ts';
import { openFileStore } from '../store/file/store.ts';
import type { Environment } from '../store/model.ts';
import { check, flagOf, type Given, namesOf, readArguments, usageError } from './arguments.ts';
import { type Location, type Options, pick, storeName, type Texts, type Values } from './options.ts';
import { asCommandError, CommandError, EXIT, inWords, isBody, note, print, printLine } from './output.ts';
import { askServer } from './socket.ts';

/** What the work of a command is given, in the running server or in a process of its own. */
export interface Context {
  engine: Engine;
  clock: Clock;
  /** The environment whose keys the server accepts; undefined: no server does this. */
  environment?: Environment;
  /** When the newest backup of this process was complete (ms since 1970). */
  lastBackupAt?: number;
}

/** The commands of this program, and what it has beside the service. */
export interface Program {
  readonly commands: readonly Command[];
  readonly extras: readonly Extra[];
}

/** What a command is given for what it does in its own process, and not where the store is open. */
export interface Here extends Location {
  readonly json: boolean;
  readonly program: Program;
  /** Lets the work of the command be done with these parameters, where the store is open. */
  ask(texts: Texts): Promise<unknown>;
}

/**
 * What the running server does for a command, and the parameters that it takes, where these are not the options of the
 * command. The result is an object, or a body.
 */
export interface Procedure {
  readonly takes: Options;
  work(context: Context, given: Given): unknown;
}

/** The work gets the values of the parameters in `takes`, and no others. */
export const procedure = <O extends Options>(
  takes: O,
  work: (context: Context, values: Values<O>) => unknown,
): Procedure => ({
  takes,
  work: (context, given) => work(context, check(takes, given)),
});

/** A command as the program has it: with all of its options, and without their types. */
export interface Command {
  readonly name: string;
  readonly help: string;
  /** Sentences of `--help` below the first. */
  readonly more?: string;
  readonly options: Options;
  /** How the store is needed: to read it, to change it, or made where there is none. Undefined: not at all. */
  readonly access?: 'read' | 'write' | 'create';
  /** True: this process does the work, also beside a running server. */
  readonly isAlone?: boolean;
  /** Whether the running server logs that it was asked. By default it logs each that may change the store. */
  readonly isLogged?: (texts: Texts) => boolean;
  readonly procedure?: Procedure;
  /** Checks what was given. Returns what is to be run. */
  prepare(given: Given): (here: Here) => unknown;
}

/**
 * How a command is defined. `work` and `run` get the values of the options that it names; to read another does not
 * compile.
 */
export interface Definition<O extends Options>
  extends Pick<Command, 'more' | 'access' | 'isAlone' | 'isLogged' | 'procedure'> {
  /** Its own: `access` adds those that say where the store is. */
  readonly options: O;
  /** What does not fit together, in words. */
  readonly misfit?: (values: Values<NoInfer<O>>) => string | undefined;
  /** What is done where the store is open: in the running server, or in this process if none runs. */
  readonly work?: (context: Context, values: Values<NoInfer<O>>) => unknown;
  /** What this process does; by default it asks once. A result that is a text is printed as it is. */
  readonly run?: (values: Values<NoInfer<O>>, here: Here) => unknown;
}

const STORE = pick('data', 'store', 'json');
const BOUND = pick('maxStoreMb');

export function command<O extends Options>(name: string, help: string, definition: Definition<O>): Command {
  const { options: own, access, misfit, work, run } = definition;
  const read = (given: Given) => {
    const values = check(own, given);
    const why = misfit?.(values);
    if (why !== undefined) throw new CommandError(EXIT.usage, why);
    return values;
  };
  const procedure =
    definition.procedure ?? (work && { takes: own, work: (context, given) => work(context, read(given)) });
  return {
    ...definition,
    name,
    help,
    // `restore` alone creates a store that it does not open: it takes a backup of any size.
    options: { ...own, ...(access && STORE), ...(access === 'create' && procedure && BOUND) },
    procedure,
    prepare(given) {
      const values = read(given);
      const asked = Object.fromEntries(Object.entries(given.texts).filter(([name]) => name in own));
      return (here) => (run ? run(values, here) : here.ask(asked));
    },
  };
}

/** Checks what was typed. Returns where the store is, and what is to be run. */
export function prepare(
  command: Command,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  { commands }: Pick<Program, 'commands'>,
) {
  const known = commands.flatMap(({ options }) => namesOf(options));
  const given = readArguments(command, words, env, known);
  try {
    return { ...check({ ...STORE, ...BOUND }, given), given, run: command.prepare(given) };
  } catch (error) {
    throw usageError(command, (error as Error).message);
  }
}

export async function perform(
  command: Command,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  program: Program,
): Promise<void> {
  const { given, run, ...location } = prepare(command, words, env, program);
  const { data, store, json } = location;
  await checkUrl(command, location, given, program);
  let engine: Engine | undefined;
  const ask = (texts: Texts) =>
    retryWhileInUse(async () => {
      const mayAsk = engine === undefined && store === undefined && !command.isAlone;
      const reply = mayAsk ? await askServer(data, command.name, texts) : undefined;
      if (reply !== undefined) return reply;
      engine ??= await openForCommand(location, command.access, program);
      return command.procedure?.work({ engine, clock: systemClock }, { texts, labelOf: flagOf });
    });
  if (command.access !== undefined) exitOnSignals(command.name);
  try {
    await show(command, await run({ data, store, json, program, ask }), json);
    await engine?.close();
  } catch (error) {
    await engine?.close().catch(() => {}); // the first failure is reported, not this one
    throw asCommandError(error, storeName(location)) ?? error;
  }
}

/** Prints the result. The store is closed later, so that a new key is printed even if closing fails. */
async function show({ name, access = 'read' }: Command, result: unknown, isJson: boolean): Promise<void> {
  if (result === undefined) return;
  if (isBody(result)) {
    for await (const chunk of result) if (!(await print(chunk))) return;
    return;
  }
  const { id }: { id?: string } = Object(result);
  const doneBut = (why: string) => new CommandError(EXIT.failed, `${name} was done${id ? ` (${id})` : ''}, but ${why}`);
  const text = typeof result === 'string' ? result : isJson ? JSON.stringify(result, null, 2) : inWords(Object(result));
  const isRead = await printLine(text).catch((error) => {
    throw access === 'read' ? error : doneBut(error.message);
  });
  if (!isRead && access !== 'read') throw doneBut('nobody read the result');
}

function exitOnSignals(name: string): void {
  const exit = () => {
    void note(`petstore ${name} was interrupted`);
    process.exit(EXIT.failed); // at once: what is not complete must not become so
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, exit);
}

/** The storage that takes the URL of `--store`. */
export function storageOf(url: string, { extras }: Program): Storage {
  const scheme = url.slice(0, url.indexOf(':'));
  const found = extras.find(({ storage }) => storage?.schemes.test(scheme))?.storage;
  if (found !== undefined) return found;
  const forms = extras.flatMap(({ storage }) => storage?.form ?? []);
  const known = forms.length > 0 ? `give ${forms.join(' or ')}` : 'this program keeps a store in a directory alone';
  throw new Error(`--store cannot be this value: ${known}`);
}

/** What reads the URL is loaded only where there is one. */
async function checkUrl(command: Command, { store }: Location, { labelOf }: Given, program: Program): Promise<void> {
  try {
    if (store !== undefined) await storageOf(store, program).check(store);
  } catch (error) {
    throw usageError(command, (error as Error).message.replace('--store', labelOf('store')));
  }
}

/** How long a command or a start waits for another process that has the store. */
const MAX_IN_USE_MS = 3_000;
const RETRY_EVERY_MS = 100;

const MEGABYTE = 2 ** 20;
/** A start takes up to 1.3 bytes of heap for a byte of the compacted file, and 50 MB; a server takes more in its life. */
const HEAP_PER_BYTE = 4;
/** So many of the smallest rows, 27 bytes each, fit into a `Map`, which holds 2^24. */
const MAX_DEFAULT_MB = 384;

/** The most that the compacted store may take. By default so much that a start always finds room in the heap. */
export const defaultStoreMb = (): number =>
  Math.min(Math.floor(getHeapStatistics().heap_size_limit / MEGABYTE / HEAP_PER_BYTE), MAX_DEFAULT_MB);

type Opening = Location & { readonly maxStoreMb?: number };

/** The store in a directory, or where an extra keeps it. */
export async function openEngine(
  { data, store, maxStoreMb = defaultStoreMb() }: Opening,
  options: EngineOptions,
  program: Program,
): Promise<Engine> {
  const bounded = { maxBytes: maxStoreMb * MEGABYTE, ...options };
  return store === undefined ? openFileStore(data, bounded) : storageOf(store, program).open(store, bounded);
}

/** Opens the store in the process of a command. What the engine logs goes to stderr as text. Only what adds rows has a bound. */
function openForCommand(location: Opening, access: Command['access'], program: Program): Promise<Engine> {
  const print = (message: string) => void note(`petstore: ${message}`);
  const options = { clock: systemClock, log: { info: () => {}, warn: print, error: print } };
  if (access === 'create') return openEngine(location, options, program);
  const isReader = access === 'read';
  return openEngine(location, { ...options, mustExist: true, readOnly: isReader, maxBytes: undefined }, program);
}

/** Tries again for a while if another process has the store: a command that ends soon, or a server that starts. */
export async function retryWhileInUse<R>(work: () => Promise<R>): Promise<R> {
  for (const end = performance.now() + MAX_IN_USE_MS; ; await wait(RETRY_EVERY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof InUseError) || performance.now() > end) throw error;
    }
  }
}
