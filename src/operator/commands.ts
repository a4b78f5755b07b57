/**
 * The table of commands, in the order of `--help`. The work of a command is a function of an open store: one request to
 * the running server does it there; if none runs, the process of the command opens the store and does it itself.
 */
import type { Clock } from '../clock.ts';
import type { Extra } from '../extra.ts';
import type { Engine } from '../store/engine.ts';
import type { Environment } from '../store/model.ts';
import { addAnimals, EXPORTED, exportAnimals, INPUT, importAnimals } from './animals.ts';
import { BOUND, backup, compact, PLACE, restore, verify, writeBackup } from './data.ts';
import * as keys from './keys.ts';
import { file, flag, type Options, type Texts, type Values } from './options.ts';
import { COMMIT, RUNTIME, VERSION } from './program.ts';
import { askReady, LISTENING, SERVE, serve } from './serve.ts';

/** What the work of a command is given, in the running server or in a process of its own. */
export interface Context {
  readonly engine: Engine;
  readonly clock: Clock;
  /** The environment whose keys the server accepts; undefined: no server does this. */
  readonly environment?: Environment;
  /** When the newest backup of this process was complete (ms since 1970). */
  lastBackupAt?: number;
}

/** What a command reads beside its parameters. */
export type Input = AsyncIterable<Uint8Array> | readonly Uint8Array[];

const JSON_SWITCH = { json: flag('print JSON, for programs') };
const STORE = { ...PLACE, ...JSON_SWITCH };
export type Place = Values<typeof STORE>;

/** What the process of a command has. */
export interface Tools {
  readonly commands: readonly Command[];
  readonly extras: readonly Extra[];
  readonly texts: Texts;
  /** Lets the work be done with these parameters: by the running server, or else here. */
  ask(texts: Texts, input?: readonly Buffer[]): Promise<unknown>;
}

/** How a command needs the store: to read it, to change it, or made where there is none. */
type Access = 'read' | 'write' | 'create';

/** `O`: its options. `P`: the parameters of its work. */
export interface Command<O extends Options = Options, P extends Options = Options> {
  readonly name: string;
  readonly help: string;
  readonly options: O;
  readonly takes: P;
  /** Undefined: it needs no store. */
  readonly access?: Access;
  /** It reads its input while it works. */
  readonly hasInput?: boolean;
  /** Throws an error for values that do not fit together, before the store is looked for. */
  readonly fits?: (values: Values<O>) => unknown;
  /** What is done where the store is open. The result is an object, or a body. */
  readonly work?: (context: Context, values: Values<P>, input: Input) => unknown;
  /** What the process of the command does; by default it asks once. A result that is a text is printed as it is. */
  readonly run?: (values: Values<O> & Place, tools: Tools) => unknown;
}

/** Makes rows of the table. Work and run get the values of what the row names: to read another does not compile. */
const commandThat =
  (access?: Access) =>
  <O extends Options = Record<never, never>, P extends Options = O>(
    name: string,
    help: string,
    row: Partial<Command<NoInfer<O>, NoInfer<P>>> & { readonly options?: O; readonly takes?: P },
  ): Command => {
    const { options: own = {}, takes = own, work } = row;
    // `restore` alone creates a store that it does not open: it takes a backup of any size.
    const options = { ...own, ...(access && STORE), ...(access === 'create' && work && BOUND) };
    return { ...row, name, help, access, options, takes } as Command;
  };
export const command = commandThat();
const [reads, changes, creates] = [commandThat('read'), commandThat('write'), commandThat('create')];

const COMMANDS: readonly Command[] = [
  creates('keys create', 'create an API key and print it, once: its last line', {
    options: keys.NEW_KEY,
    fits: keys.limitsOf,
    work: keys.createKey,
  }),
  reads('keys find', 'read a key from stdin; say whose it is, if it works', {
    takes: keys.DIGEST,
    work: keys.findKey,
    run: keys.findBySecret,
  }),
  reads('keys list', 'list keys, what is used of both windows, and bans', { work: keys.listKeys, run: keys.printKeys }),
  changes('keys revoke', 'end a key at once, for good', { options: keys.KEY_ID, work: keys.revokeKey }),
  changes('keys rotate', 'give a key a new secret and print it, once', {
    options: keys.ROTATION,
    work: keys.rotateKey,
  }),
  changes('keys lift', 'end a ban; forget strikes and earlier bans', { options: keys.KEY_ID, work: keys.liftBan }),
  changes('keys plan', 'change the plan; used requests stay used', {
    options: keys.NEW_PLAN,
    fits: keys.limitsOf,
    work: keys.setPlan,
  }),
  reads('verify', 'read and check all of the store; print a digest', { run: verify }),
  changes('compact', 'write the store anew, without what was replaced', { work: compact }),
  reads('backup', 'copy the store into a file, also while it is served', {
    options: file('the file to write, which must not exist; - is stdout'),
    takes: {},
    work: backup,
    run: writeBackup,
  }),
  creates('restore', 'fill an empty directory or database from a backup', {
    options: file('a file that backup wrote; - is standard input'),
    run: restore,
  }),
  reads('export', 'print all animals as JSON lines', { options: EXPORTED, work: exportAnimals }),
  creates('import', 'add all animals of JSON lines, or none if one is bad', {
    options: file('lines as export prints them; - is standard input'),
    takes: INPUT,
    hasInput: true,
    work: addAnimals,
    run: importAnimals,
  }),
  command('health', 'ask the local service whether it serves; exit 1 if not', {
    options: { ...LISTENING, ...JSON_SWITCH },
    run: askReady,
  }),
  command('version', 'print version, commit and runtime', {
    options: JSON_SWITCH,
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];

/** All commands of a program with these extras. */
export function commandsWith(extras: readonly Extra[]): readonly Command[] {
  const added: Options = Object.assign({}, ...extras.map(({ options }) => options));
  const options = { ...SERVE, ...added };
  return [command('serve', 'run the service until SIGTERM, SIGINT or SIGHUP', { options, run: serve }), ...COMMANDS];
}
