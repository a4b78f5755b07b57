/** The command line and the environment → checked values; and the other way, a table of options → `--help`. */
import * as v from 'valibot';
import { CommandError, EXIT } from './exit.ts';
import type { Option, Options, Spec, Values } from './options.ts';

const LINE_MAX_CHARACTERS = 80;
const COLUMN_MAX_CHARACTERS = 26;
const SHOWN_MAX_CHARACTERS = 60;

type AnyOption = Option<unknown>;

export const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (key: string): string =>
  `PETSTORE_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

export function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return (end === -1 ? words : words.slice(0, end)).some((word) => word === '--help' || word === '-h');
}

export function parseArguments<O extends Options>(
  spec: Spec<O>,
  words: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Values<O> {
  const said = sortWords(spec, words);
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(spec.options)) {
    const found = said.get(key) ?? fromEnvironment(key, option, environment) ?? fallback(key, option);
    if (found === undefined && option.need === 'required') {
      throw refusal(spec, `${named(key, option)} is missing: give ${option.allowed}`);
    }
    values[key] = found && checked(spec, option, found);
  }
  const wrong = spec.check?.(values as Values<O>);
  if (wrong !== undefined) throw refusal(spec, wrong);
  return values as Values<O>;
}

/** A value's text, and under which name it was given. */
interface Said {
  name: string;
  text: string;
}

function sortWords(spec: Spec<Options>, words: readonly string[]): Map<string, Said> {
  const keys = Object.keys(spec.options);
  const flags = new Map(keys.filter((key) => !spec.options[key].placed).map((key) => [flagOf(key), key]));
  const places = keys.filter((key) => spec.options[key].placed);
  const said = new Map<string, Said>();
  let onlyPlaces = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i];
    if (onlyPlaces || !word.startsWith('-') || word === '-') {
      const key = places.shift();
      if (key === undefined) throw refusal(spec, `${quoted(word)} is one argument too many`);
      said.set(key, { name: spec.options[key].shown, text: word });
    } else if (word === '--') {
      onlyPlaces = true;
    } else {
      const cut = word.indexOf('=');
      const name = cut === -1 ? word : word.slice(0, cut);
      const key = flags.get(name);
      if (key === undefined) throw refusal(spec, `${quoted(name)} is unknown here; known are ${list(flags.keys())}`);
      if (said.has(key)) throw refusal(spec, `${name} is given twice`);
      const option = spec.options[key];
      const isSwitch = option.shown === '';
      if (cut === -1 && !isSwitch && (words[i + 1] ?? '--').startsWith('--')) {
        throw refusal(spec, `${name} needs a value: give ${option.allowed}`);
      }
      said.set(key, { name, text: cut !== -1 ? word.slice(cut + 1) : isSwitch ? 'true' : words[++i] });
    }
  }
  return said;
}

/** A variable that is set but empty counts as not set, as shells and service managers make them. */
function fromEnvironment(
  key: string,
  option: AnyOption,
  environment: Readonly<Record<string, string | undefined>>,
): Said | undefined {
  const name = variableOf(key);
  const text = option.placed ? undefined : environment[name];
  return text === undefined || text === '' ? undefined : { name, text };
}

function fallback(key: string, option: AnyOption): Said | undefined {
  return option.fallback === undefined ? undefined : { name: flagOf(key), text: option.fallback };
}

function checked(spec: Spec<Options>, option: AnyOption, { name, text }: Said): unknown {
  const result = v.safeParse(option.schema, text);
  if (!result.success) throw refusal(spec, `${name} cannot be ${quoted(text)}: give ${option.allowed}`);
  return result.output;
}

const named = (key: string, option: AnyOption): string => (option.placed ? option.shown : flagOf(key));
const list = (names: Iterable<string>): string => [...names, '--help'].join(', ');

function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_MAX_CHARACTERS ? `${text.slice(0, SHOWN_MAX_CHARACTERS)}…` : text);
}

function refusal(spec: Pick<Spec<Options>, 'name'>, message: string): CommandError {
  return new CommandError(EXIT.usage, `petstore ${spec.name}: ${message}\nSee petstore ${spec.name} --help`);
}

export function helpOf(spec: Spec<Options>): string {
  const entries = Object.entries(spec.options);
  const places = entries.filter(([, option]) => option.placed);
  const options = entries.filter(([, option]) => !option.placed);
  const usage = places.map(([, option]) => ` ${option.shown}`).join('');
  const rows = options.map(([key, option]): Row => [`${flagOf(key)} ${option.shown}`.trimEnd(), helpText(option)]);
  const [key] = options.at(0) ?? [];
  return [
    `Usage: petstore ${spec.name}${usage}${options.length > 0 ? ' [options]' : ''}`,
    '',
    ...wrap(sentence(spec.does), LINE_MAX_CHARACTERS),
    ...(spec.more === undefined ? [] : wrap(spec.more, LINE_MAX_CHARACTERS)),
    ...section(
      'Arguments:',
      places.map(([, option]): Row => [option.shown, option.help]),
    ),
    ...section('Options:', [...rows, ['--help', 'show this']]),
    ...(key === undefined
      ? []
      : [
          '',
          ...wrap(
            `Each option can also be set by a variable: ${flagOf(key)} by ${variableOf(key)}.`,
            LINE_MAX_CHARACTERS,
          ),
        ]),
    '',
  ].join('\n');
}

export function overview(specs: readonly Spec<Options>[], exits: readonly string[]): string {
  const rows = specs
    .filter((spec) => spec.hidden !== true)
    .map((spec): Row => {
      const places = Object.values(spec.options).filter((option) => option.placed);
      return [[spec.name, ...places.map((option) => option.shown)].join(' '), spec.does];
    });
  const all = ['Usage: petstore COMMAND [options]', ...section('Commands:', rows)];
  return [
    ...all,
    '',
    'petstore COMMAND --help tells the options of a command.',
    ...wrap(`Exit status: ${exits.join(', ')}.`, LINE_MAX_CHARACTERS),
    '',
  ].join('\n');
}

type Row = [left: string, right: string];

const sentence = (text: string): string => `${text[0].toUpperCase()}${text.slice(1)}.`;

function helpText(option: AnyOption): string {
  if (option.need === 'required') return `${option.help} (needed)`;
  const shown = option.shown === '' ? undefined : option.fallback;
  return shown === undefined ? option.help : `${option.help} (${shown})`;
}

function section(title: string, rows: Row[]): string[] {
  if (rows.length === 0) return [];
  const width = Math.min(COLUMN_MAX_CHARACTERS, Math.max(...rows.map(([left]) => left.length)));
  const lines = ['', title];
  for (const [left, right] of rows) {
    const [first = '', ...rest] = wrap(right, LINE_MAX_CHARACTERS - width - 4);
    if (left.length > width) lines.push(`  ${left}`, `${' '.repeat(width + 4)}${first}`);
    else lines.push(`  ${left.padEnd(width)}  ${first}`);
    lines.push(...rest.map((line) => ' '.repeat(width + 4) + line));
  }
  return lines;
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1];
    if (last !== '' && last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}
