/** Turns words, variables and parameters into the values of options, and writes the text of `--help`. */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { excerpt, withoutSecrets } from '../text.ts';
import type { Command } from './command.ts';
import type { Option, Options, Texts, Values } from './options.ts';
import { CommandError, EXIT } from './output.ts';
import { PROGRAM } from './version.ts';

export const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (name: string): string =>
  `PETSTORE${flagOf(name).slice(1).replaceAll('-', '_').toUpperCase()}`;

const isSwitch = ({ value }: Option): boolean => value === '';
export const quoted = (text: string): string => excerpt(withoutSecrets(text));

/** What was given for options. A label says how: `--ban-after`, PETSTORE_BAN_AFTER, or the name of a parameter. */
export interface Given {
  readonly texts: Texts;
  labelOf(name: string): string;
}

/** The values of these options. Throws an error that names the fault and what would be right. */
export function check<O extends Options>(options: O, { texts, labelOf }: Given): Values<O> {
  const values = Object.entries(options).map(([name, option]) => {
    const text = texts[name];
    const { success, output } = v.safeParse(option.is, text);
    if (success) return [name, output];
    const fault = text === undefined ? 'is missing' : `cannot be ${option.isSecret ? 'this value' : quoted(text)}`;
    throw new CommandError(EXIT.usage, `${labelOf(name)} ${fault}: give ${allowedBy(option)}`);
  });
  return Object.fromEntries(values) as Values<O>;
}

/** What an option takes, to end the sentence "give …". */
export function allowedBy({ is }: Option): string {
  const { wrapped = is }: v.GenericSchema & { wrapped?: v.GenericSchema } = is;
  return v.getDescription(wrapped) ?? 'another';
}

/** The error of wrong usage. */
export const usageError = ({ name }: Pick<Command, 'name'>, message: string) =>
  new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee ${PROGRAM} ${name} --help`);

/** An option wins over its variable. An empty variable counts as not set. `known`: the names of all options. */
export function readArguments(
  command: Command,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  known: readonly string[] = [],
): Given {
  const { options } = command;
  const refuse = (fault: string): never => {
    throw usageError(command, fault);
  };
  const { values, positionals } = parsed(options, words);
  const flags = namesOf(options).map(flagOf);
  for (const word of Object.keys(values)) {
    const flag = word.length === 1 ? `-${word}` : `--${word}`;
    if (!flags.includes(flag)) refuse(`there is no option ${quoted(flag)}${suggestion(flag, flags)}`);
  }
  const texts: Record<string, string> = {};
  const labels: Record<string, string> = {};
  const add = (name: string, text: string, label: string) => {
    texts[name] = text;
    labels[name] = label;
  };
  for (const name of namesOf(options)) {
    const [flag, variable] = [flagOf(name), variableOf(name)];
    const [typed, second] = [values[flag.slice(2)] ?? []].flat();
    const isWithoutValue = typed === true || String(typed).startsWith('--'); // the next option
    if (isWithoutValue && !isSwitch(options[name])) refuse(`${flag} needs a value: give ${allowedBy(options[name])}`);
    if (second !== undefined) refuse(`${flag} is given twice`);
    const set = env[variable] ?? '';
    if (typed !== undefined) add(name, String(typed), flag);
    else if (set !== '' && !isOfKubernetes(variable, set)) add(name, set, variable);
  }
  for (const name of namesOf(options, true)) {
    const [word] = positionals.splice(0, 1);
    if (word !== undefined) add(name, word, options[name].value);
  }
  if (positionals.length > 0) refuse(`${quoted(positionals[0])} is one argument too many`);
  const variables = [...namesOf(options), ...known].map(variableOf).concat(OF_CLIENTS);
  for (const [name, text = ''] of Object.entries(env)) {
    if (!name.startsWith('PETSTORE_') || variables.includes(name) || isOfKubernetes(name, text)) continue;
    refuse(`there is no variable ${quoted(name)}${suggestion(name, variables)}`);
  }
  const { data, store } = labels;
  if (data && store) refuse(`${data} and ${store} both say where the store is: give one of them`);
  return { texts, labelOf: (name) => labels[name] ?? (options[name]?.isArgument ? options[name].value : flagOf(name)) };
}

/** `strict` is off, so that the errors are ours: they say what would be right, and show no secrets. */
function parsed(options: Options, words: readonly string[]) {
  const typeOf = (name: string) => (isSwitch(options[name]) ? ('boolean' as const) : ('string' as const));
  const types = namesOf(options).map((name) => [flagOf(name).slice(2), { type: typeOf(name), multiple: true }]);
  return parseArgs({ args: [...words], options: Object.fromEntries(types), strict: false, allowPositionals: true });
}

/** The names of those that are given by name, or by position. */
export const namesOf = (options: Options, areArguments = false): string[] =>
  Object.keys(options).filter((name) => (options[name].isArgument ?? false) === areArguments);

/** Variables of the clients in the documents. */
const OF_CLIENTS = ['PETSTORE_URL', 'PETSTORE_KEY'];

/** What Kubernetes puts into each pod beside a service called `petstore` or `petstore-…`. */
const isOfKubernetes = (name: string, text: string): boolean =>
  /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/.test(name) ||
  (name.endsWith('_PORT') && /^\w+:\/\//.test(text));

/** `; did you mean --port?` where one of the known words has the same letters, but for one or two. */
export function suggestion(typed: string, known: readonly string[]): string {
  const rest = (word: string) => [...typed].reduce((left, letter) => left.replace(letter, ''), word);
  const differing = (word: string) => typed.length - word.length + 2 * rest(word).length;
  const [near] = known.filter((word) => differing(word) <= 2).sort((a, b) => differing(a) - differing(b));
  return near ? `; did you mean ${near}?` : '';
}

const LINE_CHARS = 80;
const COLUMN_CHARS = 26;
const MARGIN = ' '.repeat(COLUMN_CHARS + 4);

/** What stands on the left, and on the right. */
type Line = [string, string];

export function helpOf(command: Command): string {
  const { options, help, more = '' } = command;
  const names = namesOf(options);
  const leftOf = (name: string, { value, isArgument }: Option) => (isArgument ? value : `${flagOf(name)} ${value}`);
  const rowsOf = (names: string[]) =>
    names.map((name): Line => [leftOf(name, options[name]).trimEnd(), about(options[name])]);
  const [example] = names.map((name) => `Each option is also a variable: ${flagOf(name)} is ${variableOf(name)}.`);
  return [
    `Usage: ${PROGRAM} ${synopsis(command)}${names.length > 0 ? ' [options]' : ''}\n`,
    ...wrap(`${help[0].toUpperCase()}${help.slice(1)}.`),
    ...wrap(more),
    ...section('Arguments:', rowsOf(namesOf(options, true))),
    ...section('Options:', [...rowsOf(names), ['--help', 'show this']]),
    ...(example ? ['', ...wrap(example)] : []),
  ].join('\n');
}

export function overview(commands: readonly Command[]): string {
  return [
    `Usage: ${PROGRAM} COMMAND [options]`,
    ...section(
      'Commands:',
      commands.map((command): Line => [synopsis(command), command.help]),
    ),
    '',
    ...wrap(`${PROGRAM} COMMAND --help lists the options of a command, with ranges and defaults.`),
    ...wrap('Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by another.'),
  ].join('\n');
}

const synopsis = ({ name, options }: Command) =>
  [name, ...namesOf(options, true).map((one) => options[one].value)].join(' ');

function about(option: Option): string {
  const { is, help, otherwise, isArgument } = option;
  if (isSwitch(option)) return help;
  const allowed = allowedBy(option);
  const range = allowed === 'a path' || help.includes(allowed) ? help : `${help}: ${allowed}`;
  const { default: fallback = otherwise }: v.GenericSchema & { default?: unknown } = is;
  if (fallback !== undefined) return `${range} (default ${fallback})`;
  return is.type === 'optional' || isArgument ? range : `${range} (required)`;
}

function section(title: string, rows: Line[]): string[] {
  const lines = rows.map(([left, right]) => {
    const start = left.length > COLUMN_CHARS ? `  ${left}\n${MARGIN}` : `  ${left}`.padEnd(MARGIN.length);
    return start + wrap(right, LINE_CHARS - MARGIN.length).join(`\n${MARGIN}`);
  });
  return rows.length === 0 ? [] : ['', title, ...lines];
}

/** Breaks between words. A word longer than a line, such as a path, gets a line of its own. */
const wrap = (text: string, width = LINE_CHARS): string[] =>
  (text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, 'g')) ?? []).map((line) => line.trimEnd());
