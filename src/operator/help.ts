/** The text of `--help`, from the table of commands. */
import { flagOf, type Spec, variableOf } from './arguments.ts';
import { type Option, path } from './options.ts';
import { wrap } from './output.ts';
import { PROGRAM } from './version.ts';

const MAX_HELP_LINE_CHARS = 80;
const MIN_HELP_LINE_CHARS = 50;
const COLUMN_CHARS = 26;
const NARROW_COLUMN_CHARS = 16;

type Row = [left: string, right: string];

/** `columns`: those of the terminal that it is for. */
export function helpOf(spec: Spec, columns?: number): string {
  const width = widthIn(columns);
  const flags = Object.entries(spec.options).filter(([, { is }]) => is !== 'placed');
  const rows = flags.map(([key, option]): Row => [`${flagOf(key)} ${option.shown}`.trimEnd(), helpText(option)]);
  const places = placesOf(spec).map((option): Row => [option.shown, helpText(option)]);
  return [
    `Usage: ${PROGRAM} ${usageOf(spec)}${flags.length > 0 ? ' [options]' : ''}\n`,
    ...wrap(`${spec.does[0].toUpperCase()}${spec.does.slice(1)}.`, width),
    ...wrap(spec.more ?? '', width),
    ...section('Arguments:', places, width),
    ...section('Options:', [...rows, ['--help', 'show this']], width),
    ...flags
      .slice(0, 1)
      .flatMap(([key]) => [
        '',
        ...wrap(`Each option is also a variable: ${flagOf(key)} is ${variableOf(key)}.`, width),
      ]),
  ].join('\n');
}

export function overview(specs: readonly Spec[], columns?: number): string {
  const width = widthIn(columns);
  const rows = specs.map((spec): Row => [usageOf(spec), spec.does]);
  return [
    `Usage: ${PROGRAM} COMMAND [options]`,
    ...section('Commands:', rows, width),
    '',
    ...wrap(`${PROGRAM} COMMAND --help lists the options of a command, with ranges and defaults.`, width),
    ...wrap(
      'Exit status: 0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by another, 5 no grade yet.',
      width,
    ),
  ].join('\n');
}

/** The positional arguments of a command. */
const placesOf = ({ options }: Spec) => Object.values(options).filter(({ is }) => is === 'placed');
const usageOf = (spec: Spec) => [spec.name, ...placesOf(spec).map(({ shown }) => shown)].join(' ');

function helpText({ is, help, allowed, fallback }: Option<unknown>): string {
  if (is === 'switch') return help;
  const range = allowed === path.allowed || help.includes(allowed) ? help : `${help}: ${allowed}`;
  return range + (is === 'needed' ? ' (required)' : fallback === undefined ? '' : ` (default ${fallback})`);
}

function section(title: string, rows: Row[], width: number): string[] {
  if (rows.length === 0) return [];
  const column = width < MAX_HELP_LINE_CHARS ? NARROW_COLUMN_CHARS : COLUMN_CHARS;
  const margin = ' '.repeat(column + 4);
  const lines = rows.map(([left, right]) => {
    const start = left.length > column ? `  ${left}\n${margin}` : `  ${left}`.padEnd(margin.length);
    return start + wrap(right, width - margin.length).join(`\n${margin}`);
  });
  return ['', title, ...lines];
}

/** Lines of help are as wide as the terminal, within bounds, so that it breaks none within a word. */
const widthIn = (columns = MAX_HELP_LINE_CHARS): number =>
  Math.max(MIN_HELP_LINE_CHARS, Math.min(MAX_HELP_LINE_CHARS, columns));
