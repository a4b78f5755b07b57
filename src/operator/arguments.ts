/** A command, and how its words and the environment become the checked values that it runs with. */
import { parseArgs } from 'node:util';
import * as v from 'valibot';
import { CommandError, EXIT } from './exit.ts';
import type { Options, Spec, Values } from './options.ts';
import { print } from './output.ts';

const SHOWN_MAX_CHARACTERS = 60;

/** `banAfter` is `--ban-after`, or PETSTORE_BAN_AFTER in the environment. */
export const flagOf = (key: string): string => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
export const variableOf = (key: string): string =>
  `PETSTORE_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

interface Work<O extends Options, R> extends Spec<O> {
  run(values: Values<O>): R | Promise<R>;
  /** The result for people; `--json` prints it as it is. A command without this prints by itself. */
  words?(result: R, values: Values<O>): string;
}

export interface Command {
  spec: Spec<Options>;
  /** Checks what was said, and touches nothing; what comes back does the work. */
  prepare(words: readonly string[], environment: NodeJS.ProcessEnv): () => Promise<void>;
}

export function command<O extends Options, R>({ run, words, ...spec }: Work<O, R>): Command {
  return {
    spec,
    prepare: (line, environment) => {
      const values = parseArguments(spec, line, environment);
      return async () => {
        const result = await run(values);
        if (words === undefined) return;
        const text = 'json' in values && values.json === true ? JSON.stringify(result, null, 2) : words(result, values);
        await print(text).catch((error: CommandError) => {
          if (spec.unprinted === undefined) throw error;
          throw new CommandError(EXIT.failed, `${error.message || 'nobody read what was printed'}; ${spec.unprinted}`);
        });
      };
    },
  };
}

export function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return (end === -1 ? words : words.slice(0, end)).some((word) => word === '--help' || word === '-h');
}

function parseArguments<O extends Options>(
  spec: Spec<O>,
  words: readonly string[],
  environment: NodeJS.ProcessEnv,
): Values<O> {
  const said = sortWords(spec, words);
  // A variable that is set but empty counts as not set, as shells and service managers make them.
  const variableAt = (key: string) =>
    spec.options[key].is === 'placed' ? undefined : environment[variableOf(key)] || undefined;
  const nameOf = (key: string) => {
    if (!said.has(key) && variableAt(key) !== undefined) return variableOf(key);
    return spec.options[key].is === 'placed' ? spec.options[key].shown : flagOf(key);
  };
  const values: Record<string, unknown> = {};
  for (const [key, option] of Object.entries(spec.options)) {
    const name = nameOf(key);
    const text = said.get(key) ?? variableAt(key) ?? option.fallback;
    if (text === undefined && option.is === 'optional') continue;
    if (text === undefined) throw refusal(spec, `${name} is missing: give ${option.allowed}`);
    const read = v.safeParse(option.schema, text);
    if (!read.success) throw refusal(spec, `${name} cannot be ${quoted(text)}: give ${option.allowed}`);
    values[key] = read.output;
  }
  const wrong = spec.check?.(values as Values<O>, nameOf);
  if (wrong !== undefined) throw refusal(spec, wrong);
  return values as Values<O>;
}

/** What was said, by the option's key. */
function sortWords(spec: Spec<Options>, words: readonly string[]): Map<string, string> {
  const keys = Object.keys(spec.options);
  const places = keys.filter((key) => spec.options[key].is === 'placed');
  const flags = new Map(keys.filter((key) => !places.includes(key)).map((key) => [flagOf(key), key]));
  const said = new Map<string, string>();
  for (const token of tokensOf(spec, flags, words)) {
    if (token.kind === 'positional') {
      const key = places.shift();
      if (key === undefined) throw refusal(spec, `${quoted(token.value)} is one argument too many`);
      said.set(key, token.value);
    } else if (token.kind === 'option') {
      const { rawName: flag, value, inlineValue, index } = token;
      const key = flags.get(flag);
      if (flag === '--help') throw refusal(spec, '--help takes no value');
      if (key === undefined) {
        const typed = flag.startsWith('--') ? flag : words[index]; // parseArgs takes `-port` for `-p -o -r -t`
        const known = [...flags.keys(), '--help'].join(', ');
        throw refusal(spec, `${quoted(typed)} is unknown here; known are ${known}`);
      }
      if (said.has(key)) throw refusal(spec, `${flag} is given twice`);
      const { is, allowed } = spec.options[key];
      const isLacking = is !== 'switch' && !inlineValue && (value === undefined || value.startsWith('--'));
      if (isLacking) throw refusal(spec, `${flag} needs a value: give ${allowed}`);
      said.set(key, value ?? 'true');
    }
  }
  return said;
}

function tokensOf({ options }: Spec<Options>, flags: Map<string, string>, words: readonly string[]) {
  const types = Array.from(flags, ([flag, key]) => {
    const type = options[key].is === 'switch' ? ('boolean' as const) : ('string' as const);
    return [flag.slice('--'.length), { type }];
  });
  const settings = { strict: false, allowPositionals: true, tokens: true } as const;
  return parseArgs({ ...settings, args: [...words], options: Object.fromEntries(types) }).tokens;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_MAX_CHARACTERS ? `${text.slice(0, SHOWN_MAX_CHARACTERS)}…` : text);
}

function refusal({ name }: Pick<Spec<Options>, 'name'>, message: string): CommandError {
  return new CommandError(EXIT.usage, `petstore ${name}: ${message}\nSee petstore ${name} --help`);
}
