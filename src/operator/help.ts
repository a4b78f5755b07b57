/** The text of `--help`, from the table of commands. */
import { flagOf, type Spec, variableOf } from './arguments.ts';
import { type Option, path } from './options.ts';
import { PROGRAM } from './version.ts';

const MAX_HELP_LINE_CHARS = 80;
const COLUMN_CHARS = 26;

type Row = [left: string, right: string];

export function helpOf(spec: Spec): string {
  const flags = Object.entries(spec.options).filter(([, { is }]) => is !== 'placed');
  const rows = flags.map(([key, option]): Row => [`${flagOf(key)} ${option.shown}`.trimEnd(), helpText(option)]);
  const places = placesOf(spec).map((option): Row => [option.shown, helpText(option)]);
  return [
    `Usage: ${PROGRAM} ${usageOf(spec)}${flags.length > 0 ? ' [options]' : ''}\n`,
    ...wrap(`${spec.does[0].toUpperCase()}${spec.does.slice(1)}.`),
    ...wrap(spec.more ?? ''),
    ...section('Arguments:', places),
    ...section('Options:', [...rows, ['--help', 'show this']]),
    ...flags.slice(0, 1).map(([key]) => `\nEach option is also a variable: ${flagOf(key)} is ${variableOf(key)}.`),
  ].join('\n');
}

export function overview(specs: readonly Spec[]): string {
  const rows = specs.map((spec): Row => [usageOf(spec), spec.does]);
  return [
    `Usage: ${PROGRAM} COMMAND [options]`,
    ...section('Commands:', rows),
    '',
    ...wrap(`${PROGRAM} COMMAND --help lists the options of a command, with ranges and defaults.`),
    ...wrap('Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by another, 5 no grade yet.'),
  ].join('\n');
}

/** The positional arguments of a command. */
export const placesOf = ({ options }: Spec) => Object.values(options).filter(({ is }) => is === 'placed');
const usageOf = (spec: Spec) => [spec.name, ...placesOf(spec).map(({ shown }) => shown)].join(' ');

function helpText({ is, help, allowed, fallback }: Option<unknown>): string {
  if (is === 'switch') return help;
  const range = allowed === path.allowed || help.includes(allowed) ? help : `${help}: ${allowed}`;
  return range + (is === 'needed' ? ' (required)' : fallback === undefined ? '' : ` (default ${fallback})`);
}

function section(title: string, rows: Row[]): string[] {
  if (rows.length === 0) return [];
  const margin = ' '.repeat(COLUMN_CHARS + 4);
  const lines = rows.map(([left, right]) => {
    const start = left.length > COLUMN_CHARS ? `  ${left}\n${margin}` : `  ${left}`.padEnd(margin.length);
    return start + wrap(right, MAX_HELP_LINE_CHARS - margin.length).join(`\n${margin}`);
  });
  return ['', title, ...lines];
}

/** A word longer than a line, such as a path, gets a line of its own. */
const wrap = (text: string, width = MAX_HELP_LINE_CHARS): string[] =>
  (text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, 'g')) ?? []).map((line) => line.trimEnd());
