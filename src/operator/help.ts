/** The table of commands → what `--help` prints. */
import { flagOf, variableOf } from './arguments.ts';
import type { Option, Options, Spec } from './options.ts';

const LINE_MAX_CHARACTERS = 80;
const COLUMN_MAX_CHARACTERS = 26;
const EXITS = '0 done, 1 failed, 2 wrong usage, 3 damaged data, 4 in use by another';

export function helpOf(spec: Spec<Options>): string {
  const entries = Object.entries(spec.options);
  const flags = entries.filter(([, { is }]) => is !== 'placed');
  const lines = [
    `Usage: petstore ${usageOf(spec)}${flags.length > 0 ? ' [options]' : ''}`,
    '',
    ...wrap(`${spec.does[0].toUpperCase()}${spec.does.slice(1)}.`),
    ...(spec.more === undefined ? [] : wrap(spec.more)),
    ...section(
      'Arguments:',
      placesOf(spec).map(({ shown, help }) => [shown, help]),
    ),
    ...section('Options:', [
      ...flags.map(([key, option]): Row => [`${flagOf(key)} ${option.shown}`.trimEnd(), helpText(option)]),
      ['--help', 'show this'],
    ]),
  ];
  if (flags.length > 0) {
    const [[key]] = flags;
    lines.push('', ...wrap(`Each option can also be set by a variable: ${flagOf(key)} by ${variableOf(key)}.`));
  }
  return lines.join('\n');
}

export function overview(specs: readonly Spec<Options>[]): string {
  return [
    'Usage: petstore COMMAND [options]',
    ...section(
      'Commands:',
      specs.filter(({ hidden }) => hidden !== true).map((spec) => [usageOf(spec), spec.does]),
    ),
    '',
    'petstore COMMAND --help tells the options of a command.',
    ...wrap(`Exit status: ${EXITS}.`),
  ].join('\n');
}

type Row = [left: string, right: string];

const placesOf = ({ options }: Spec<Options>) => Object.values(options).filter(({ is }) => is === 'placed');
const usageOf = (spec: Spec<Options>) => [spec.name, ...placesOf(spec).map(({ shown }) => shown)].join(' ');

function helpText({ is, help, fallback }: Option<unknown>): string {
  if (is === 'needed') return `${help} (needed)`;
  return is === 'switch' || fallback === undefined ? help : `${help} (${fallback})`;
}

function section(title: string, rows: Row[]): string[] {
  if (rows.length === 0) return [];
  const width = Math.min(COLUMN_MAX_CHARACTERS, Math.max(...rows.map(([left]) => left.length)));
  const margin = ' '.repeat(width + 4);
  const lines = rows.map(([left, right]) => {
    const start = left.length > width ? `  ${left}\n${margin}` : `  ${left.padEnd(width)}  `;
    return start + wrap(right, LINE_MAX_CHARACTERS - margin.length).join(`\n${margin}`);
  });
  return ['', title, ...lines];
}

/** No word is longer than a line. */
function wrap(text: string, width = LINE_MAX_CHARACTERS): string[] {
  return text.match(new RegExp(`.{1,${width}}(?: |$)`, 'g'))!.map((line) => line.trimEnd());
}
