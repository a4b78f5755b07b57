/** What a command is, how its words and variables become values, and the text of `--help`. */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import type { Clock } from '../clock.ts';
import type { Extra } from '../extra.ts';
import type { Engine } from '../store/engine.ts';
import type { Environment } from '../store/model.ts';
import { excerpt, withoutSecrets } from '../text.ts';
import { BOUND, JSON_SWITCH, type Option, type Options, PLACE, type Values } from './options.ts';
import { CommandError, EXIT, PROGRAM, usage } from './program.ts';

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

/** By the names of options or parameters: what was given, as it was given. */
export type Texts = Readonly<Partial<Record<string, string>>>;
const STORE = { ...PLACE, ...JSON_SWITCH };
/** Where the store is, and how the result is printed. With `store`, `data` means nothing. */
export type Place = Values<typeof STORE>;

/** What a command reads beside its parameters. */
export type Input = AsyncIterable<Uint8Array> | readonly Uint8Array[];

/** What the process of a command has. */
export interface Tools {
  readonly program: Program;
  readonly given: Given;
  /** Lets the work be done with these parameters: by the running server, or else here, on the store that is opened. */
  ask(texts: Texts, input?: readonly Buffer[]): Promise<unknown>;
}

/** How a command is defined. `O`: its options. `P`: the parameters of its work, where they are others. */
interface Row<O extends Options, P extends Options> extends Pick<Command, 'access' | 'more'> {
  readonly takes?: P;
  readonly misfit?: (values: Values<O>) => string | undefined;
  readonly work?: (context: Context, values: Values<NoInfer<P>>, input: Input) => unknown;
  readonly run?: (values: Values<O> & Place, tools: Tools) => unknown;
}

/** A command without the types of its options. */
export interface Command {
  readonly name: string;
  readonly help: string;
  /** Sentences of `--help` below the first. */
  readonly more?: string;
  /** How the store is needed: to read it, to change it, or made where there is none. Undefined: not at all. */
  readonly access?: 'read' | 'write' | 'create';
  /** All of them: `access` adds those that say where the store is. */
  readonly options: Options;
  /** The parameters of its work. */
  readonly takes: Options;
  /** What does not fit together, in words. */
  misfit?(values: Values<Options>): string | undefined;
  /** What is done where the store is open. The result is an object, or a body. */
  work?(context: Context, values: Values<Options>, input: Input): unknown;
  /** What the process of the command does; by default it asks once. A result that is a text is printed as it is. */
  run?(values: Values<Options> & Place, tools: Tools): unknown;
}

/** Work and run get the values of the options that the row names; to read another does not compile. */
export function command<O extends Options, P extends Options = O>(
  name: string,
  help: string,
  own: O,
  row: Row<NoInfer<O>, P>,
): Command {
  const { access, work, takes = own } = row;
  // `restore` alone creates a store that it does not open: it takes a backup of any size.
  const options = { ...own, ...(access && STORE), ...(access === 'create' && work && BOUND) };
  return { ...row, name, help, options, takes };
}

export const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (name: string): string =>
  `PETSTORE${flagOf(name).slice(1).replaceAll('-', '_').toUpperCase()}`;
export const quoted = (text: string): string => excerpt(withoutSecrets(text));

const isSwitch = ({ value }: Option): boolean => value === '';
/** Those that are given by position, or those that are given by name. */
const entriesOf = (options: Options, areArguments: boolean) =>
  Object.entries(options).filter(([, { isArgument = false }]) => isArgument === areArguments);

/** What was given for options. A label says how: `--ban-after`, PETSTORE_BAN_AFTER, or the name of a parameter. */
export interface Given {
  readonly texts: Texts;
  labelOf(name: string): string;
}

/** The values of these options. Throws an error that names the fault and what would be right. */
export function check<O extends Options>(options: O, { texts, labelOf }: Given): Values<O> {
  const values = Object.entries(options).map(([name, { is, allowed, isSecret }]) => {
    const text = texts[name];
    const { success, output } = v.safeParse(is, text);
    if (success) return [name, output];
    const fault = text === undefined ? 'is missing' : `cannot be ${isSecret ? 'this value' : quoted(text)}`;
    throw usage(`${labelOf(name)} ${fault}: give ${allowed}`);
  });
  return Object.fromEntries(values) as Values<O>;
}

/** Like `check`, and what does not fit together is refused too. */
function checkAll({ misfit }: Command, options: Options, given: Given): Values<Options> {
  const values = check(options, given);
  const why = misfit?.(values);
  if (why !== undefined) throw usage(why);
  return values;
}

/** Does the work of a command on a store that is open. */
export const perform = (command: Command, context: Context, given: Given, input: Input = []): unknown =>
  command.work?.(context, checkAll(command, command.takes, given), input);

/** The error of wrong usage of a command. */
export const misused = ({ name }: Command, { message }: Error) =>
  new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee ${PROGRAM} ${name} --help`);

/** Reads what was typed, and the variables. Throws an error that says what is wrong. */
export function prepare(command: Command, words: readonly string[], env: NodeJS.ProcessEnv, all: readonly Command[]) {
  try {
    const given = readWords(command, words, env);
    refuseUnknownVariables([command, ...all], env);
    return { given, values: { ...checkAll(command, command.options, given), ...check(STORE, given) } };
  } catch (error) {
    throw misused(command, error as Error);
  }
}

/** Each variable becomes a word before those that were typed, of which the last wins. An empty variable is not set. */
function readWords({ options }: Command, words: readonly string[], env: NodeJS.ProcessEnv): Given {
  const named = entriesOf(options, false).map(([name]) => name);
  const places = entriesOf(options, true).map(([name]) => name);
  const set = named.flatMap((name) => {
    const text = env[variableOf(name)] ?? '';
    return text === '' || isOfKubernetes(variableOf(name), text) ? [] : `${flagOf(name)}=${text}`;
  });
  const texts: Record<string, string> = {};
  const labels: Record<string, string> = {};
  for (const token of tokensOf(options, [...set, ...words])) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      const name = places.shift();
      if (name === undefined) throw usage(`${quoted(token.value)} is one argument too many`);
      texts[name] = token.value;
      continue;
    }
    const { rawName: flag, value, index } = token;
    const name = named.find((one) => flagOf(one) === flag);
    if (name === undefined) throw usage(`there is no option ${quoted(flag)}${suggestion(flag, named.map(flagOf))}`);
    const isWithout = value === undefined || (!token.inlineValue && value.startsWith('--')); // the next option
    if (isWithout && !isSwitch(options[name])) throw usage(`${flag} needs a value: give ${options[name].allowed}`);
    if (labels[name] === flag) throw usage(`${flag} is given twice`);
    texts[name] = value ?? 'true';
    labels[name] = index < set.length ? variableOf(name) : flag;
  }
  const { data, store } = labels;
  if (data && store) throw usage(`${data} and ${store} both say where the store is: give one of them`);
  return { texts, labelOf: (name) => labels[name] ?? (options[name].isArgument ? options[name].value : flagOf(name)) };
}

/** `strict` is off, so that the errors are ours: they say what would be right, and show no secrets. */
function tokensOf(options: Options, args: string[]) {
  const types = entriesOf(options, false).map(([name, option]) => {
    return [flagOf(name).slice(2), { type: isSwitch(option) ? ('boolean' as const) : ('string' as const) }];
  });
  const known = Object.fromEntries(types);
  return parseArgs({ args, options: known, strict: false, allowPositionals: true, tokens: true }).tokens;
}

/** Variables of the clients in the documents. */
const OF_CLIENTS = ['PETSTORE_URL', 'PETSTORE_KEY'];

/** What Kubernetes puts into each pod beside a service called `petstore` or `petstore-…`. */
const isOfKubernetes = (name: string, text: string): boolean =>
  /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) ||
  (name.endsWith('_PORT') && /^\w+:\/\//.test(text));

/** A typing error in a file of settings must not go unnoticed. */
function refuseUnknownVariables(commands: readonly Command[], env: NodeJS.ProcessEnv): void {
  const names = commands.flatMap(({ options }) => entriesOf(options, false).map(([name]) => name));
  const known = [...names.map(variableOf), ...OF_CLIENTS];
  for (const [name, text = ''] of Object.entries(env)) {
    if (!name.startsWith('PETSTORE_') || known.includes(name) || isOfKubernetes(name, text)) continue;
    throw usage(`there is no variable ${quoted(name)}${suggestion(name, known)}`);
  }
}

/** `; did you mean --port?` where one of the known words has the same letters, but for one or two. */
export function suggestion(typed: string, known: readonly string[]): string {
  const rest = (word: string) => [...typed].reduce((left, letter) => left.replace(letter, ''), word);
  const differing = (word: string) => typed.length - word.length + 2 * rest(word).length;
  const [near] = known.filter((word) => differing(word) <= 2).sort((a, b) => differing(a) - differing(b));
  return near ? `; did you mean ${near}?` : '';
}

const LINE_CHARS = 80;
const COLUMN_CHARS = 26;

export function helpOf(command: Command): string {
  const { options, help, more = '' } = command;
  const places = entriesOf(options, true).map(([, option]) => row(option.value, about(option)));
  const named = entriesOf(options, false);
  const rows = named.map(([name, option]) => row(`${flagOf(name)} ${option.value}`.trimEnd(), about(option)));
  const [example] = named.map(([name]) => `Each option is also a variable: ${flagOf(name)} is ${variableOf(name)}.`);
  return [
    `Usage: ${PROGRAM} ${synopsis(command)}${example ? ' [options]' : ''}\n`,
    ...wrap(`${help[0].toUpperCase()}${help.slice(1)}. ${more}`),
    '',
    ...places,
    ...rows,
    row('--help', 'show this'),
    ...(example ? ['', example] : []),
  ].join('\n');
}

export function overview(commands: readonly Command[]): string {
  return [
    `Usage: ${PROGRAM} COMMAND [options]\n`,
    ...commands.map((command) => row(synopsis(command), command.help)),
    '',
    ...wrap(`${PROGRAM} COMMAND --help lists the options of a command, with ranges and defaults.`),
    'Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use.',
  ].join('\n');
}

const synopsis = ({ name, options }: Command) =>
  [name, ...entriesOf(options, true).map(([, { value }]) => value)].join(' ');

function about({ help, range = '', otherwise, isRequired }: Option): string {
  const fallback = isRequired ? 'required' : otherwise === undefined ? '' : `default ${otherwise}`;
  const facts = [range, fallback].filter((fact) => fact !== '').join('; ');
  return facts === '' ? help : `${help} (${facts})`;
}

/** A line, or more where the right does not fit beside the left. */
function row(left: string, right: string): string {
  const start = `  ${left}`.padEnd(COLUMN_CHARS - 2);
  const line = `${start}  ${right}`;
  if (line.length <= LINE_CHARS) return line;
  const margin = `\n${' '.repeat(COLUMN_CHARS)}`;
  const rest = wrap(right, LINE_CHARS - COLUMN_CHARS).join(margin);
  return start.length > COLUMN_CHARS - 2 ? start + margin + rest : `${start}  ${rest}`;
}

/** Breaks between words. A word longer than a line, such as a path, gets a line of its own. */
const wrap = (text: string, width = LINE_CHARS): string[] =>
  (text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, 'g')) ?? []).map((line) => line.trimEnd());
