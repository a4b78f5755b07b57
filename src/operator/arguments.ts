/** How the words of a command line and the environment become the checked values of a command. */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { excerpt, withoutSecrets } from '../text.ts';
import { CommandError, EXIT } from './failures.ts';
import type { Option, Options, Values } from './options.ts';
import { PROGRAM } from './version.ts';

const MAX_TYPOS = 2;

/** `banAfter` is `--ban-after`, or PETSTORE_BAN_AFTER in the environment. */
export const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (key: string): string => `PETSTORE${flagOf(key).slice(1).replaceAll('-', '_').toUpperCase()}`;

/** How an option was given, as `--ban-after` or PETSTORE_BAN_AFTER; undefined: it was not. */
export type Given = (key: string) => string | undefined;

/** What the command line and `--help` know of a command. */
export interface Usage<A extends Options = Options, O extends Options = Options> {
  name: string;
  summary: string;
  details?: string;
  /** Arguments by position, such as the ID of `keys revoke ID`. */
  args?: A;
  options: O;
  /** Checks values against each other; returns the fault, in words. */
  check?(values: Values<A & O>, given: Given): string | undefined;
}

/** The error of wrong usage. */
export const usageError = ({ name }: { name: string }, message: string) =>
  new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee ${PROGRAM} ${name} --help`);

/** The values of all arguments and options, or an error that names the fault and what would be right. */
export function readArguments<A extends Options, O extends Options>(
  usage: Usage<A, O>,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Values<A & O> {
  const texts = textsOf(usage as Usage, words, env);
  const values: Record<string, unknown> = {};
  const valueFor = (key: string, label: string, { kind, allowed, schema, fallback, isSecret }: Option) => {
    const { text, source } = texts.get(key) ?? { text: fallback, source: label };
    if (kind === 'optional' && !texts.has(key)) return undefined;
    if (text === undefined) throw usageError(usage, `${source} is missing: give ${allowed}`);
    const { success, output } = v.safeParse(schema, text);
    if (success) return output;
    throw usageError(usage, `${source} cannot be ${isSecret ? 'this value' : quoted(text)}: give ${allowed}`);
  };
  for (const [key, option] of Object.entries(usage.args ?? {})) values[key] = valueFor(key, option.value, option);
  for (const [key, option] of Object.entries(usage.options)) values[key] = valueFor(key, flagOf(key), option);
  const given: Given = (key) => texts.get(key)?.source;
  const [data, store] = [given('data'), given('store')];
  if (data && store) throw usageError(usage, `${data} and ${store} both say where the store is: give one of them`);
  const fault = usage.check?.(values as Values<A & O>, given);
  if (fault !== undefined) throw usageError(usage, fault);
  return values as Values<A & O>;
}

/** The text given for each option, and its source. An option wins over its variable; an empty variable is not set. */
function textsOf(usage: Usage, words: readonly string[], env: NodeJS.ProcessEnv) {
  const texts = new Map<string, { text: string; source: string }>();
  const args = Object.entries(usage.args ?? {});
  const keys = new Map(Object.keys(usage.options).map((key) => [flagOf(key), key]));
  const isSwitch = (key: string) => usage.options[key].kind === 'switch';
  const types = Array.from(keys, ([flag, key]) => [
    flag.slice(2),
    { type: isSwitch(key) ? ('boolean' as const) : ('string' as const) },
  ]);
  // Not strict: the errors below say what would be right, and show no secrets.
  const lenient = { strict: false, allowPositionals: true, tokens: true } as const;
  const { tokens } = parseArgs({ args: [...words], options: Object.fromEntries(types), ...lenient });
  for (const token of tokens) {
    if (token.kind === 'positional') {
      const [key, option] = args.shift() ?? [];
      if (key === undefined) throw usageError(usage, `${quoted(token.value)} is one argument too many`);
      texts.set(key, { text: token.value, source: option!.value });
    } else if (token.kind === 'option') {
      const { rawName: flag, value, inlineValue } = token;
      const key = keys.get(flag);
      if (key === undefined) {
        throw usageError(usage, `there is no option ${quoted(flag)}${suggestion(flag, [...keys.keys()])}`);
      }
      if (texts.has(key)) throw usageError(usage, `${flag} is given twice`);
      const text = isSwitch(key) ? (value ?? 'true') : value;
      const isNextOption = !inlineValue && text?.startsWith('--');
      if (text === undefined || isNextOption) {
        throw usageError(usage, `${flag} needs a value: give ${usage.options[key].allowed}`);
      }
      texts.set(key, { text, source: flag });
    }
  }
  for (const key of keys.values()) {
    const source = variableOf(key);
    const text = env[source];
    if (text && !texts.has(key)) texts.set(key, { text, source });
  }
  return texts;
}

const quoted = (text: string): string => excerpt(withoutSecrets(text));

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
