/** The results as text: aligned tables for a terminal. */
import { styleText } from 'node:util';
import { AIMS, inUnit, standing } from './aims.ts';
import type { Spread } from './measure.ts';
import type { Results, Row } from './results.ts';

export type Align = 'left' | 'right';

export interface Column {
  heading: string;
  align: Align;
}

/** Columns as wide as their widest cell; a line of dashes under the headings. */
export function table(columns: Column[], rows: string[][]): string {
  const widths = columns.map(({ heading }, i) => Math.max(heading.length, ...rows.map((row) => row[i].length)));
  const line = (cells: string[]) =>
    cells
      .map((cell, i) => (columns[i].align === 'right' ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '─'.repeat(width)).join('  ');
  return [line(columns.map(({ heading }) => heading)), rule, ...rows.map(line)].join('\n');
}

export const left = (heading: string): Column => ({ heading, align: 'left' });
export const right = (heading: string): Column => ({ heading, align: 'right' });

export const ROW_COLUMNS: Column[] = [
  left('suite'),
  left('subject'),
  left('load'),
  right('requests/s'),
  right('from to'),
  right('CPU µs'),
  right('p50 ms'),
  right('p99 ms'),
  right('p99.9 ms'),
  right('MB'),
];

export function rowCells({ suite, subject, how, perSecond, cpuMicros, latency, memoryMb }: Row): string[] {
  return [
    suite,
    subject,
    how,
    number(perSecond?.median, 0),
    perSecond ? range(perSecond, 0) : '',
    number(cpuMicros?.median, 1),
    number(latency?.p50, 2),
    number(latency?.p99, 2),
    number(latency?.p999, 2),
    number(memoryMb, 0),
  ];
}

export const RATIO_COLUMNS: Column[] = [
  left('suite'),
  left('petstore against'),
  right('throughput'),
  right('from to'),
  right('CPU a request'),
  right('from to'),
];

export function ratioCells({ suite, against, throughput, cpu }: Results['ratios'][number]): string[] {
  return [suite, against, number(throughput.median, 2), range(throughput, 2), number(cpu.median, 2), range(cpu, 2)];
}

export const AIM_COLUMNS: Column[] = [
  left('path'),
  left('against'),
  right('aim'),
  right('dreamt of'),
  right('reached'),
  right('from to'),
  right('by CPU'),
  left(''),
];

/** Only the aims of the suites that ran. */
export function aimRows({ reached }: Results): string[][] {
  return AIMS.filter(({ id }) => reached.some(({ aim }) => aim === id)).map((aim) => {
    const found = reached.find((one) => one.aim === aim.id);
    const { value, byCpu } = found!;
    const sign = aim.good === 'high' ? '≥ ' : '≤ ';
    return [
      aim.path,
      aim.against,
      sign + inUnit(aim, aim.aim),
      sign + inUnit(aim, aim.dream),
      value ? inUnit(aim, value.median) : '–',
      value && value.min < value.max ? `${inUnit(aim, value.min)} to ${inUnit(aim, value.max)}` : '',
      byCpu === undefined ? '' : number(byCpu, 2),
      found?.missing ? `not measured: ${found.missing}` : standing(aim, found),
    ];
  });
}

/** Nothing where there was one round only. */
function range({ min, max }: Spread, digits: number): string {
  return min < max ? `${number(min, digits)} to ${number(max, digits)}` : '';
}

export function number(value: number | undefined, digits: number): string {
  if (value === undefined || Number.isNaN(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export const GROWTH_COLUMNS: Column[] = [
  right('animals'),
  right('first page/s'),
  right('random pages/s'),
  right('rare status/s'),
  right('MB'),
  right('start s'),
];

export function growthCells(point: Results['growth'][number]): string[] {
  const { animals, firstPerSecond, randomPerSecond, rarePerSecond, memoryMb, startSeconds } = point;
  const rates = [animals, firstPerSecond, randomPerSecond, rarePerSecond, memoryMb];
  return [...rates.map((value) => number(value, 0)), number(startSeconds, 2)];
}

export const FIGURE_COLUMNS: Column[] = [left('suite'), left('what'), left('value')];

export function figureCells({ suite, name, value }: Results['figures'][number]): string[] {
  return [suite, name, value];
}

export function asText(results: Results, coloured: boolean): string {
  const { machine, rows, ratios, growth, figures, notes } = results;
  const parts = [
    `${machine.processor}, ${machine.cores} cores, ${machine.memoryGb} GB; ${machine.system}; Node ${machine.node}`,
    `load: ${machine.load}; ${machine.pinned}; ${results.rounds} rounds of ${results.secondsEach} s, in turn`,
  ];
  const add = (title: string, text: string) => parts.push('', coloured ? styleText('bold', title) : title, '', text);
  if (rows.length > 0) add('Measured', table(ROW_COLUMNS, rows.map(rowCells)));
  if (ratios.length > 0) add('Ratios, round by round', table(RATIO_COLUMNS, ratios.map(ratioCells)));
  if (growth.length > 0) add('Growth, pages of 20', table(GROWTH_COLUMNS, growth.map(growthCells)));
  if (figures.length > 0) add('Figures', table(FIGURE_COLUMNS, figures.map(figureCells)));
  const aims = aimRows(results);
  if (aims.length > 0) add('Aims', marked(table(AIM_COLUMNS, aims), coloured));
  if (notes.length > 0) add('Notes', notes.map((note) => `- ${note}`).join('\n'));
  return parts.join('\n');
}

function marked(text: string, coloured: boolean): string {
  return coloured ? text.replaceAll('MISSED', styleText(['bold', 'red'], 'MISSED')) : text;
}
