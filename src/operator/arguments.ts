/** From words, variables and calls to the values of a command; and the text of `--help`. */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { excerpt, withoutSecrets } from '../text.ts';
import type { Command } from './command.ts';
import type { Option, Options, Texts, Values } from './options.ts';
import { CommandError, EXIT } from './output.ts';
import { PROGRAM } from './version.ts';

const MAX_TYPOS = 2;

export const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (name: string): string =>
  `PETSTORE${flagOf(name).slice(1).replaceAll('-', '_').toUpperCase()}`;

const isSwitch = ({ value }: Option): boolean => value === '';
const quoted = (text: string): string => excerpt(withoutSecrets(text));

/** What was given for options, and for each how: as `--ban-after`, PETSTORE_BAN_AFTER, or a parameter of a call. */
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
  const texts: Record<string, string> = {};
  const labels: Record<string, string> = {};
  const add = (name: string, text: string, label: string) => {
    texts[name] = text;
    labels[name] = label;
  };
  const flags = new Map(namesOf(options).map((name) => [flagOf(name), name]));
  const places = namesOf(options, true);
  for (const token of tokensOf(command, words)) {
    if (token.kind === 'positional') {
      const name = places.shift() ?? refuse(`${quoted(token.value)} is one argument too many`);
      add(name, token.value, options[name].value);
    } else if (token.kind === 'option') {
      const { rawName: flag, inlineValue } = token;
      const name =
        flags.get(flag) ?? refuse(`there is no option ${quoted(flag)}${suggestion(flag, [...flags.keys()])}`);
      if (texts[name] !== undefined) refuse(`${flag} is given twice`);
      const value = token.value ?? (isSwitch(options[name]) ? 'true' : undefined);
      const isNextOption = !inlineValue && value?.startsWith('--');
      if (value === undefined || isNextOption) refuse(`${flag} needs a value: give ${allowedBy(options[name])}`);
      else add(name, value, flag);
    }
  }
  for (const name of flags.values()) {
    const text = env[variableOf(name)];
    if (text && texts[name] === undefined && !isOfKubernetes(variableOf(name), text)) add(name, text, variableOf(name));
  }
  const variables = [...flags.values(), ...known].map(variableOf).concat(OF_CLIENTS);
  for (const [name, text = ''] of Object.entries(env)) {
    if (!name.startsWith('PETSTORE_') || variables.includes(name) || isOfKubernetes(name, text)) continue;
    refuse(`there is no variable ${quoted(name)}${suggestion(name, variables)}`);
  }
  const { data, store } = labels;
  if (data && store) refuse(`${data} and ${store} both say where the store is: give one of them`);
  return { texts, labelOf: (name) => labels[name] ?? (options[name]?.isArgument ? options[name].value : flagOf(name)) };
}

/** Not strict, so that the errors are ours: they say what would be right, and show no secrets. */
function tokensOf({ options }: Command, words: readonly string[]) {
  const types = Object.entries(options).map(([name, option]) => [
    flagOf(name).slice(2),
    { type: isSwitch(option) ? ('boolean' as const) : ('string' as const) },
  ]);
  const lenient = { strict: false, allowPositionals: true, tokens: true } as const;
  return parseArgs({ args: [...words], options: Object.fromEntries(types), ...lenient }).tokens;
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

/** `; did you mean --port?` where one of the known words is at most two typos away. */
export function suggestion(typed: string, known: readonly string[]): string {
  const near = known.map((word) => ({ word, typos: distance(typed, word) })).sort((a, b) => a.typos - b.typos);
  return near.length > 0 && near[0].typos <= MAX_TYPOS ? `; did you mean ${near[0].word}?` : '';
}

/** The Levenshtein distance. */
function distance(typed: string, word: string): number {
  let row = Array.from({ length: word.length + 1 }, (_, at) => at);
  for (const letter of typed) {
    const next = [row[0] + 1];
    for (const [at, other] of [...word].entries()) {
      next.push(Math.min(row[at + 1] + 1, next[at] + 1, row[at] + Number(letter !== other)));
    }
    row = next;
  }
  return row[row.length - 1];
}

const LINE_CHARS = 80;
const COLUMN_CHARS = 26;
const MARGIN = ' '.repeat(COLUMN_CHARS + 4);

/** What stands on the left, and on the right. */
type Line = [string, string];

export function helpOf(command: Command): string {
  const { options, help, more = '' } = command;
  const names = namesOf(options);
  const args = namesOf(options, true);
  const rows = names.map((name): Line => [`${flagOf(name)} ${options[name].value}`.trimEnd(), about(options[name])]);
  const [example] = names.map((name) => `Each option is also a variable: ${flagOf(name)} is ${variableOf(name)}.`);
  return [
    `Usage: ${PROGRAM} ${synopsis(command)}${names.length > 0 ? ' [options]' : ''}\n`,
    ...wrap(`${help[0].toUpperCase()}${help.slice(1)}.`),
    ...wrap(more),
    ...section(
      'Arguments:',
      args.map((name): Line => [options[name].value, about(options[name])]),
    ),
    ...section('Options:', [...rows, ['--help', 'show this']]),
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
    ...wrap('Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by another, 5 no grade yet.'),
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
