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
import { file, flag, type LabelOf, type Options, type Texts, type Values } from './options.ts';
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

/** `O`: its options. `P`: the parameters of its work. */
export interface Command<O extends Options = Options, P extends Options = Options> {
  readonly name: string;
  readonly help: string;
  readonly options: O;
  readonly takes: P;
  /** How the store is needed: to read it, to change it, or made where there is none. Undefined: not at all. */
  readonly access?: 'read' | 'write' | 'create';
  /** It reads its input while it works. */
  readonly hasInput?: boolean;
  /** Throws an error for values that do not fit together. */
  readonly fits?: (values: Values<O>, labelOf: LabelOf) => unknown;
  /** What is done where the store is open. The result is an object, or a body. */
  readonly work?: (context: Context, values: Values<P>, input: Input) => unknown;
  /** What the process of the command does; by default it asks once. A result that is a text is printed as it is. */
  readonly run?: (values: Values<O> & Place, tools: Tools) => unknown;
}

/** Work and run get the values of the options that the row names; to read another does not compile. */
export function command<O extends Options, P extends Options = O>(
  name: string,
  help: string,
  own: O,
  row: Omit<Command<NoInfer<O>, NoInfer<P>>, 'name' | 'help' | 'options' | 'takes'> & { readonly takes?: P },
): Command {
  const { access, work, takes = own } = row;
  // `restore` alone creates a store that it does not open: it takes a backup of any size.
  const options = { ...own, ...(access && STORE), ...(access === 'create' && work && BOUND) };
  return { ...row, name, help, options, takes } as Command;
}

const NONE = {};

const COMMANDS: readonly Command[] = [
  command('keys create', 'create an API key and print it, once: its last line', keys.NEW_KEY, {
    access: 'create',
    fits: keys.limitsOf,
    work: keys.createKey,
  }),
  command('keys find', 'read a key from stdin; say whose it is, if it works', NONE, {
    access: 'read',
    takes: keys.DIGEST,
    work: keys.findKey,
    run: keys.findBySecret,
  }),
  command('keys list', 'list keys, what is used of both windows, and bans', NONE, {
    access: 'read',
    work: keys.listKeys,
    run: keys.printKeys,
  }),
  command('keys revoke', 'end a key at once, for good', keys.KEY_ID, { access: 'write', work: keys.revokeKey }),
  command('keys rotate', 'give a key a new secret and print it, once', keys.ROTATION, {
    access: 'write',
    work: keys.rotateKey,
  }),
  command('keys lift', 'end a ban; forget strikes and earlier bans', keys.KEY_ID, {
    access: 'write',
    work: keys.liftBan,
  }),
  command('keys plan', 'change the plan; used requests stay used', keys.NEW_PLAN, {
    access: 'write',
    fits: keys.limitsOf,
    work: keys.setPlan,
  }),
  command('verify', 'read and check all of the store; print a digest', NONE, { access: 'read', run: verify }),
  command('compact', 'write the store anew, without what was replaced', NONE, { access: 'write', work: compact }),
  command(
    'backup',
    'copy the store into a file, also while it is served',
    file('the file to write, which must not exist; - is stdout'),
    { access: 'read', takes: NONE, work: backup, run: writeBackup },
  ),
  command(
    'restore',
    'fill an empty directory or database from a backup',
    file('a file that backup wrote; - is standard input'),
    { access: 'create', run: restore },
  ),
  command('export', 'print all animals as JSON lines', EXPORTED, { access: 'read', work: exportAnimals }),
  command(
    'import',
    'add all animals of JSON lines, or none if one is bad',
    file('lines as export prints them; - is standard input'),
    { access: 'create', takes: INPUT, hasInput: true, work: addAnimals, run: importAnimals },
  ),
  command(
    'health',
    'ask the local service whether it serves; exit 1 if not',
    { ...LISTENING, ...JSON_SWITCH },
    { run: askReady },
  ),
  command('version', 'print version, commit and runtime', JSON_SWITCH, {
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];

/** All commands of a program with these extras. */
export function commandsWith(extras: readonly Extra[]): readonly Command[] {
  const added: Options = Object.assign({}, ...extras.map(({ options }) => options));
  return [
    command('serve', 'run the service until SIGTERM, SIGINT or SIGHUP', { ...SERVE, ...added }, { run: serve }),
    ...COMMANDS,
  ];
}
