/** How the words of a command and the environment become the checked values that it runs with. */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { CommandError, EXIT } from './exit.ts';
import type { Options, Values } from './options.ts';
import { PROGRAM } from './version.ts';

const SHOWN_MAX_CHARACTERS = 60;
const MISTYPED_MAX_EDITS = 2;

/** `banAfter` is `--ban-after`, or PETSTORE_BAN_AFTER in the environment. */
export const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (key: string): string => `PETSTORE${flagOf(key).slice(1).replaceAll('-', '_').toUpperCase()}`;

/** How an option was given, as `--ban-after` or PETSTORE_BAN_AFTER; undefined: it was not. */
export type Given = (key: string) => string | undefined;

export interface Spec<O extends Options> {
  name: string;
  does: string;
  more?: string;
  options: O;
  /** What no option alone can tell: returns what is wrong. */
  check?(values: Values<O>, given: Given): string | undefined;
}

/** What was said for each option, and how. */
export type Said = Record<string, { text: string; as: string }>;

/** An option wins over its variable; an empty variable counts as not set. */
export function saidIn({ name, options }: Spec<Options>, words: readonly string[], variables: NodeJS.ProcessEnv): Said {
  const said: Said = {};
  const places = Object.keys(options).filter((key) => options[key].is === 'placed');
  const keys = new Map(Object.keys(options).flatMap((key) => (places.includes(key) ? [] : [[flagOf(key), key]])));
  for (const token of tokensOf(options, keys, words)) {
    if (token.kind === 'positional') {
      const key = places.shift();
      if (key === undefined) throw refusal(name, `${quoted(token.value)} is one argument too many`);
      said[key] = { text: token.value, as: options[key].shown };
    } else if (token.kind === 'option') {
      const { rawName: flag, value, inlineValue, index } = token;
      const key = keys.get(flag);
      if (flag === '--help') throw refusal(name, '--help takes no value');
      if (key === undefined) {
        const typed = flag.startsWith('--') ? flag : words[index]; // parseArgs takes `-port` for `-p -o -r -t`
        throw refusal(name, `there is no option ${quoted(typed)}${didYouMean(typed, [...keys.keys()])}`);
      }
      if (key in said) throw refusal(name, `${flag} is given twice`);
      const isLacking = options[key].is !== 'switch' && !inlineValue && (value ?? '--').startsWith('--');
      if (isLacking) throw refusal(name, `${flag} needs a value: give ${options[key].allowed}`);
      said[key] = { text: value ?? 'true', as: flag };
    }
  }
  for (const key of keys.values()) {
    const text = variables[variableOf(key)];
    if (text) said[key] ??= { text, as: variableOf(key) };
  }
  return said;
}

function tokensOf(options: Options, keys: Map<string, string>, args: readonly string[]) {
  const types = Array.from(keys, ([flag, key]) => {
    return [flag.slice('--'.length), { type: options[key].is === 'switch' ? 'boolean' : 'string' }] as const;
  });
  const settings = { strict: false, allowPositionals: true, tokens: true } as const;
  return parseArgs({ ...settings, args: [...args], options: Object.fromEntries(types) }).tokens;
}

/** The values of all options, or a refusal that names what is wrong and what would be right. */
export function valuesOf<O extends Options>({ name, options, check }: Spec<O>, said: Said): Values<O> {
  const values: Record<string, unknown> = {};
  const given: Given = (key) => (Object.hasOwn(said, key) ? said[key].as : undefined);
  for (const [key, { is, shown, allowed, schema, fallback }] of Object.entries(options)) {
    const as = given(key) ?? (is === 'placed' ? shown : flagOf(key));
    const text = given(key) === undefined ? fallback : said[key].text;
    if (text === undefined && is === 'optional') continue;
    if (text === undefined) throw refusal(name, `${as} is missing: give ${allowed}`);
    const read = v.safeParse(schema, text);
    if (!read.success) throw refusal(name, `${as} cannot be ${quoted(text)}: give ${allowed}`);
    values[key] = read.output;
  }
  const wrong = check?.(values as Values<O>, given);
  if (wrong !== undefined) throw refusal(name, wrong);
  return values as Values<O>;
}

export function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return (end === -1 ? words : words.slice(0, end)).some((word) => word === '--help' || word === '-h');
}

function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_MAX_CHARACTERS ? `${text.slice(0, SHOWN_MAX_CHARACTERS)}…` : text);
}

function refusal(name: string, message: string): CommandError {
  return new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee ${PROGRAM} ${name} --help`);
}

/** `; did you mean --port?` where one of the known words is at most two slips away. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const [nearest] = known.map((word) => ({ word, edits: edits(typed, word) })).sort((a, b) => a.edits - b.edits);
  return nearest && nearest.edits <= MISTYPED_MAX_EDITS ? `; did you mean ${nearest.word}?` : '';
}

/** How many letters must be put in, left out or replaced (Levenshtein). */
function edits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [i, letter] of Array.from(from).entries()) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      next.push(Math.min(row[j + 1] + 1, next[j] + 1, row[j] + Number(letter !== to[j])));
    }
    row = next;
  }
  return row[to.length];
}
