/**
 * Options: a rule of valibot says which texts one takes and what each becomes; a placeholder and a sentence are for `--help`.
 * The same rules hold for an option, for its variable, and for a parameter of a call on the socket.
 */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { DAY_MS, durationMs } from '../clock.ts';
import { excerpt, withoutSecrets } from '../text.ts';
import type { Command, Context, Input, Place } from './commands.ts';
import { CommandError, EXIT, PROGRAM, usage } from './program.ts';

export interface Option {
  /** What a text, or its absence, becomes. */
  readonly is: v.GenericSchema<string | undefined, unknown>;
  /** The placeholder of its value in `--help`; empty: a switch, which its name alone turns on. */
  readonly value: string;
  readonly help: string;
  /** What it takes, to end the sentence "give …". */
  readonly allowed: string;
  /** The same, short, for `--help`, where the sentence does not say it. */
  readonly range?: string;
  /** The text, or the words, for what counts where it is not given. */
  readonly otherwise?: string;
  /** True: it is given by its position, without its name. */
  readonly isArgument?: boolean;
  /** No message repeats its value. */
  readonly isSecret?: boolean;
}

/** By name: `banAfter` is `--ban-after`, and PETSTORE_BAN_AFTER in the environment. */
export type Options = Readonly<Record<string, Option>>;
export type Values<O extends Options> = { [N in keyof O]: v.InferOutput<O[N]['is']> };
/** By the names of options: what was given, as it was given. */
export type Texts = Readonly<Partial<Record<string, string>>>;

type Rule = v.GenericSchema<string, unknown>;

export const required = <R extends Rule>(is: R, value: string, help: string) => {
  return { is, value, help, allowed: v.getDescription(is) ?? '', range: v.getTitle(is) };
};
export const argument = <R extends Rule>(is: R, value: string, help: string) => {
  return { ...required(is, value, help), isArgument: true };
};
/** `otherwise`: its default in words. */
export const optional = <R extends Rule>(rule: R, value: string, help: string, otherwise?: string) => {
  return { ...required(rule, value, help), is: v.optional(rule), otherwise };
};
/** `otherwise`: the text that counts where none is given. */
export const withDefault = <R extends Rule>(rule: R, otherwise: string, value: string, help: string) => {
  return { ...required(rule, value, help), is: v.optional(rule, otherwise), otherwise };
};
export const text = (allowed: string, pattern: RegExp, fits: (text: string) => boolean = () => true) =>
  v.pipe(v.string(), v.regex(pattern), v.check(fits), v.description(allowed));

const yesOrNo = v.pipe(
  text('true or false', /^(true|false|1|0)$/),
  v.transform((text) => ['true', '1'].includes(text)),
);
/** A switch: true by its name alone; `true`, `false`, `1` or `0` as a variable. */
export const flag = (help: string) => ({ ...required(yesOrNo, '', help), is: v.optional(yesOrNo, 'false') });

export function choice<const T extends string>(texts: readonly T[], allowed?: string) {
  const words = texts.join(', ').replace(/, (?=[^,]+$)/, ' or ');
  return v.pipe(v.picklist(texts), v.description(allowed ?? words), v.title(words));
}

export const integer = (min: number, max: number, why = '') =>
  v.pipe(
    text(`a whole number, ${min} to ${max}${why}`, /^\d{1,15}$/, (text) => min <= Number(text) && Number(text) <= max),
    v.transform(Number),
    v.title(`${min} to ${max}`),
  );

export const duration = v.pipe(
  text('a time such as 90s, 15m, 24h or 7d, up to 30d', /^\w+$/, (text) => durationMs(text) <= 30 * DAY_MS),
  v.transform(durationMs),
  v.title('90s, 15m, 24h, 7d; up to 30d'),
);

/** Not a URL, which belongs to `--store`: its password would become part of a file's name. */
export const path = text('a path', /^(?!\w[\w+.-]*:\/\/)[^\0]{1,4096}$/s);
export const file = (help: string) => ({ file: argument(path, 'FILE', help) });

export const hostPort = v.pipe(
  text('HOST:PORT, such as 127.0.0.1:9180 or [::1]:9180', /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d{1,5}$/),
  v.transform((text) => ({ host: text.replace(/^\[|\]?:\d+$/g, ''), port: Number(/\d+$/.exec(text)) })),
  v.check(({ port }) => port <= 65_535),
);

export const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (name: string): string =>
  `PETSTORE${flagOf(name).slice(1).replaceAll('-', '_').toUpperCase()}`;
export const quoted = (text: string): string => excerpt(withoutSecrets(text));

/** Those that are given by position, or those that are given by name. */
const entriesOf = (options: Options, areArguments: boolean) =>
  Object.entries(options).filter(([, { isArgument = false }]) => isArgument === areArguments);

/** The values of these options. Throws an error that names the fault and what would be right. */
export function check<O extends Options>(options: O, texts: Texts): Values<O> {
  const values = Object.entries(options).map(([name, { is, value, allowed, isArgument, isSecret }]) => {
    const text = texts[name];
    const { success, output } = v.safeParse(is, text);
    if (success) return [name, output];
    const fault = text === undefined ? 'is missing' : `cannot be ${isSecret ? 'this value' : quoted(text)}`;
    throw usage(`${isArgument ? value : `${flagOf(name)} (or ${variableOf(name)})`} ${fault}: give ${allowed}`);
  });
  return Object.fromEntries(values) as Values<O>;
}

/** Does the work of a command on a store that is open. */
export function perform(command: Command, context: Context, texts: Texts, input: Input): unknown {
  const names = Object.keys(command.takes);
  const unknown = Object.keys(texts).find((name) => !names.includes(name));
  if (unknown !== undefined) throw usage(`there is no parameter ${quoted(unknown)}${suggestion(unknown, names)}`);
  return command.work?.(context, check(command.takes, texts), input);
}

/** The error of wrong usage of a command. */
export const misused = ({ name }: Command, { message }: Error) =>
  new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee ${PROGRAM} ${name} --help`);

/** The names of the options that have a variable. */
const byVariable = ({ options }: Command): Partial<Record<string, string>> =>
  Object.fromEntries(entriesOf(options, false).map(([name]) => [variableOf(name), name]));

/** Reads what was typed, and the variables. Throws an error that says what is wrong. */
export function prepare(command: Command, words: string[], env: NodeJS.ProcessEnv, all: readonly Command[]) {
  try {
    const texts = readWords(command.options, words);
    const own = byVariable(command);
    const known = Object.assign({}, own, ...all.map(byVariable));
    for (const [variable, text = ''] of Object.entries(env)) {
      if (!variable.startsWith('PETSTORE_') || FOREIGN.test(`${variable}=${text}`)) continue;
      // A typing error in a file of settings must not go unnoticed.
      if (!(variable in known))
        throw usage(`there is no variable ${quoted(variable)}${suggestion(variable, Object.keys(known))}`);
      const name = own[variable];
      if (name !== undefined && text !== '') texts[name] ??= text; // an empty one is not set
    }
    if (texts.data !== undefined && texts.store !== undefined) {
      throw usage('--data and --store (or their variables) both say where the store is: give one of them');
    }
    const values = check(command.options, texts);
    command.fits?.(values);
    return { texts, values: values as Place };
  } catch (error) {
    throw misused(command, error as Error);
  }
}

/** `strict` is off, so that the errors are ours: they say what would be right, and show no secrets. */
function readWords(options: Options, args: string[]): Record<string, string> {
  const names = new Map(entriesOf(options, false).map(([name]) => [flagOf(name), name]));
  const known: Record<string, { type: 'boolean' | 'string' }> = {};
  for (const [flag, name] of names) known[flag.slice(2)] = { type: options[name].value === '' ? 'boolean' : 'string' };
  const places = entriesOf(options, true).map(([name]) => name);
  const texts: Record<string, string> = {};
  for (const token of parseArgs({ args, options: known, strict: false, allowPositionals: true, tokens: true }).tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      const name = places.shift();
      if (name === undefined) throw usage(`${quoted(token.value)} is one argument too many`);
      texts[name] = token.value;
      continue;
    }
    const { rawName: flag, value } = token;
    const name = names.get(flag);
    if (name === undefined) throw usage(`there is no option ${quoted(flag)}${suggestion(flag, [...names.keys()])}`);
    const isWithout = value === undefined || (!token.inlineValue && value.startsWith('--')); // the next option
    if (isWithout && options[name].value !== '') throw usage(`${flag} needs a value: give ${options[name].allowed}`);
    if (texts[name] !== undefined) throw usage(`${flag} is given twice`);
    texts[name] = value ?? 'true';
  }
  return texts;
}

/** What Kubernetes sets beside a service called `petstore` or `petstore-…`, and variables of clients in the documents. */
const FOREIGN = /_SERVICE_(HOST|PORT)|_PORT_\d+_|_PORT=\w+:\/\/|^PETSTORE_(URL|KEY)=/;

/** `; did you mean --port?` where one of the known words has the same letters, but for one or two. */
export function suggestion(typed: string, known: readonly string[]): string {
  const rest = (word: string) => [...typed].reduce((left, letter) => left.replace(letter, ''), word);
  const differing = (word: string) => typed.length - word.length + 2 * rest(word).length;
  const [near] = known.filter((word) => differing(word) <= 2).sort((a, b) => differing(a) - differing(b));
  return near ? `; did you mean ${near}?` : '';
}

export function helpOf(command: Command): string {
  const { help, options } = command;
  const rows = Object.entries(options).map(rowOf);
  return `Usage: ${PROGRAM} ${synopsis(command)} [options]

${help[0].toUpperCase()}${help.slice(1)}.

${[...rows, row('--help', 'show this')].join('\n')}
Each option is also a variable: --ban-after is PETSTORE_BAN_AFTER.`;
}

export const overview = (commands: readonly Command[]) => `Usage: ${PROGRAM} COMMAND [options]

${commands.map((command) => row(synopsis(command), command.help)).join('\n')}

COMMAND --help lists the options of a command, with ranges and defaults.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use.`;

const synopsis = ({ name, options }: Command) =>
  [name, ...entriesOf(options, true).map(([, { value }]) => value)].join(' ');

const LINE_CHARS = 80;
const COLUMN_CHARS = 26;

const row = (left: string, right: string) => `  ${left.padEnd(COLUMN_CHARS - 4)}  ${right}`;

/** What it takes is on a line of its own where there is no room beside the sentence. */
function rowOf([name, { value, help, range, otherwise, isArgument }]: [string, Option]): string {
  const left = isArgument ? value : `${flagOf(name)} ${value}`;
  const facts = [range, otherwise && `default ${otherwise}`].filter((fact) => fact !== undefined).join('; ');
  if (facts === '') return row(left, help);
  const line = row(left, `${help} (${facts})`);
  return line.length <= LINE_CHARS ? line : `${row(left, help)}\n${' '.repeat(COLUMN_CHARS)}(${facts})`;
}
