/** The text of `--help`, from the tables of commands and options. */
import { flagOf, type Usage, variableOf } from './arguments.ts';
import type { Option } from './options.ts';
import { PROGRAM } from './version.ts';

const LINE_CHARS = 80;
const COLUMN_CHARS = 26;
const MARGIN = ' '.repeat(COLUMN_CHARS + 4);

type Row = [left: string, right: string];

export function helpOf(usage: Usage): string {
  const options = Object.entries(usage.options);
  const optionRows = options.map(([key, option]): Row => [`${flagOf(key)} ${option.value}`.trimEnd(), about(option)]);
  const args = Object.values(usage.args ?? {}).map((option): Row => [option.value, about(option)]);
  const [example] = options.map(([key]) => `Each option is also a variable: ${flagOf(key)} is ${variableOf(key)}.`);
  return [
    `Usage: ${PROGRAM} ${synopsis(usage)}${options.length > 0 ? ' [options]' : ''}\n`,
    ...wrap(`${usage.summary[0].toUpperCase()}${usage.summary.slice(1)}.`),
    ...wrap(usage.details ?? ''),
    ...section('Arguments:', args),
    ...section('Options:', [...optionRows, ['--help', 'show this']]),
    ...(example ? ['', ...wrap(example)] : []),
  ].join('\n');
}

export function overview(commands: readonly Usage[]): string {
  return [
    `Usage: ${PROGRAM} COMMAND [options]`,
    ...section(
      'Commands:',
      commands.map((usage): Row => [synopsis(usage), usage.summary]),
    ),
    '',
    ...wrap(`${PROGRAM} COMMAND --help lists the options of a command, with ranges and defaults.`),
    ...wrap('Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by another.'),
  ].join('\n');
}

const synopsis = ({ name, args = {} }: Usage) => [name, ...Object.values(args).map(({ value }) => value)].join(' ');

function about({ kind, help, allowed, fallback }: Option): string {
  if (kind === 'switch') return help;
  const range = allowed === 'a path' || help.includes(allowed) ? help : `${help}: ${allowed}`;
  return range + (kind === 'required' ? ' (required)' : fallback === undefined ? '' : ` (default ${fallback})`);
}

function section(title: string, rows: Row[]): string[] {
  const lines = rows.map(([left, right]) => {
    const start = left.length > COLUMN_CHARS ? `  ${left}\n${MARGIN}` : `  ${left}`.padEnd(MARGIN.length);
    return start + wrap(right, LINE_CHARS - MARGIN.length).join(`\n${MARGIN}`);
  });
  return rows.length === 0 ? [] : ['', title, ...lines];
}

/** Breaks between words. A word longer than a line, such as a path, gets a line of its own. */
const wrap = (text: string, width = LINE_CHARS): string[] =>
  (text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, 'g')) ?? []).map((line) => line.trimEnd());
