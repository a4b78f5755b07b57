/** How the words of a command and the environment become the checked values that it runs with. */
import * as v from 'valibot';
import { excerpt, withoutSecrets } from '../quoting.ts';
import { CommandError, EXIT } from './exit.ts';
import type { Options, Values } from './options.ts';
import { PROGRAM } from './version.ts';

const MAX_MISTYPED_SLIPS = 2;

/** `banAfter` is `--ban-after`, or PETSTORE_BAN_AFTER in the environment. */
export const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (key: string): string => `PETSTORE${flagOf(key).slice(1).replaceAll('-', '_').toUpperCase()}`;

export type Variables = Readonly<Record<string, string | undefined>>;
/** How an option was given, as `--ban-after` or PETSTORE_BAN_AFTER; undefined: it was not. */
export type Given = (key: string) => string | undefined;

/** The description of a command: name, help text and options. */
export interface Spec<O extends Options = Options> {
  name: string;
  does: string;
  more?: string;
  options: O;
  /** Checks options against each other; returns the fault, in words. */
  check?(values: Values<O>, given: Given): string | undefined;
}

/** Wrong usage of a command. */
export const refusalOf =
  ({ name }: { name: string }) =>
  (message: string) =>
    new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee ${PROGRAM} ${name} --help`);

/** The values of all options, or a refusal that names the fault and the values that would be right. */
export function read<O extends Options>(spec: Spec<O>, words: readonly string[], variables: Variables): Values<O> {
  const refusal = refusalOf(spec);
  const said = saidIn(spec.options, words, variables, refusal);
  const values: Record<string, unknown> = {};
  for (const [key, { is, shown, allowed, schema, fallback, isSecret }] of Object.entries(spec.options)) {
    const { text, as } = said.get(key) ?? { text: fallback, as: is === 'placed' ? shown : flagOf(key) };
    if (is === 'optional' && !said.has(key)) continue;
    if (text === undefined) throw refusal(`${as} is missing: give ${allowed}`);
    const { success, output } = v.safeParse(schema, text);
    const typed = isSecret ? 'this value' : excerpt(withoutSecrets(text));
    if (!success) throw refusal(`${as} cannot be ${typed}: give ${allowed}`);
    values[key] = output;
  }
  const given: Given = (key) => said.get(key)?.as;
  if (given('data') && given('store')) {
    throw refusal(`${given('data')} and ${given('store')} both say where the store is: give one of them`);
  }
  const wrong = spec.check?.(values as Values<O>, given);
  if (wrong !== undefined) throw refusal(wrong);
  return values as Values<O>;
}

/** The text given for each option, and its source. An option wins over its variable; an empty variable is not set. */
function saidIn(options: Options, words: readonly string[], variables: Variables, refusal: (message: string) => Error) {
  const said = new Map<string, { text: string; as: string }>();
  const places = Object.keys(options).filter((key) => options[key].is === 'placed');
  const flags = new Map(Object.keys(options).flatMap((key) => (places.includes(key) ? [] : [[flagOf(key), key]])));
  const rest = [...words];
  for (let word = rest.shift(), areOptionsOver = false; word !== undefined; word = rest.shift()) {
    if (areOptionsOver || !/^-./.test(word)) {
      const key = places.shift();
      if (key === undefined) throw refusal(`${excerpt(withoutSecrets(word))} is one argument too many`);
      said.set(key, { text: word, as: options[key].shown });
    } else if (word === '--') {
      areOptionsOver = true;
    } else {
      const [, flag, inline] = /^(--[^=]+)(?:=(.*))?$/s.exec(word) ?? [word, word];
      const key = flags.get(flag);
      if (flag === '--help') throw refusal('--help takes no value');
      if (key === undefined)
        throw refusal(`there is no option ${excerpt(withoutSecrets(flag))}${didYouMean(flag, [...flags.keys()])}`);
      if (said.has(key)) throw refusal(`${flag} is given twice`);
      const next = () => (rest[0]?.startsWith('--') ? undefined : rest.shift());
      const text = inline ?? (options[key].is === 'switch' ? 'true' : next());
      if (text === undefined) throw refusal(`${flag} needs a value: give ${options[key].allowed}`);
      said.set(key, { text, as: flag });
    }
  }
  for (const key of flags.values()) {
    const [text, as] = [variables[variableOf(key)], variableOf(key)];
    if (text && !said.has(key)) said.set(key, { text, as });
  }
  return said;
}

/** `; did you mean --port?` where one of the known words is at most two slips away. */
export function didYouMean(typed: string, known: readonly string[]): string {
  const near = known.map((word) => ({ word, slips: slipsBetween(typed, word) })).sort((a, b) => a.slips - b.slips);
  return near.length > 0 && near[0].slips <= MAX_MISTYPED_SLIPS ? `; did you mean ${near[0].word}?` : '';
}

/** How many letters must be put in, left out or replaced (Levenshtein). */
function slipsBetween(typed: string, word: string): number {
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
