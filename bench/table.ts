/** The results as tables: text for a terminal; the page has the same. */
import { styleText } from 'node:util';
import { AIMS, inUnit, standing } from './aims.ts';
import type { Results } from './bench.ts';
import type { Spread } from './measure.ts';

export interface Table {
  title: string;
  /** Those of numbers begin with a `>`: they are aligned to the right. */
  headings: string[];
  rows: string[][];
}

/** Columns as wide as their widest cell; a line of dashes under the headings. */
export function asLines({ headings, rows }: Table): string {
  const names = headings.map((heading) => heading.replace('>', ''));
  const widths = names.map((name, i) => Math.max(name.length, ...rows.map((row) => row[i].length)));
  const line = (cells: string[]) => {
    const padded = cells.map((cell, i) => {
      return headings[i].startsWith('>') ? cell.padStart(widths[i]) : cell.padEnd(widths[i]);
    });
    return padded.join('  ').trimEnd();
  };
  return [line(names), widths.map((width) => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

/** Those that have rows. */
export function tablesOf({ rows, ratios, growth, figures, ...results }: Results): Table[] {
  const tables = [
    aimTable(results),
    {
      title: 'Ratios, round by round',
      headings: ['suite', 'against', '>throughput', '>from to', '>CPU a request', '>from to'],
      rows: ratios.map(({ suite, against, throughput, cpu }) => {
        return [
          suite,
          against,
          number(throughput.median, 2),
          range(throughput, 2),
          number(cpu.median, 2),
          range(cpu, 2),
        ];
      }),
    },
    {
      title: 'Growth, pages of 20',
      headings: ['>animals', '>first page/s', '>rare status/s', '>MB', '>start s'],
      rows: growth.map(({ animals, firstPerSecond, rarePerSecond, memoryMb, startSeconds }) => [
        ...[animals, firstPerSecond, rarePerSecond, memoryMb].map((value) => number(value, 0)),
        number(startSeconds, 2),
      ]),
    },
    {
      title: 'Everything measured',
      headings: ['suite', 'subject', 'load', '>requests/s', '>from to', '>CPU µs', '>p50 ms', '>p99 ms', '>p99.9 ms'],
      rows: rows.map(({ suite, subject, how, perSecond, cpuMicros, latency }) => [
        ...[suite, subject, how, number(perSecond?.median, 0), perSecond ? range(perSecond, 0) : ''],
        ...[number(cpuMicros?.median, 1), ...[latency?.p50, latency?.p99, latency?.p999].map((ms) => number(ms, 2))],
      ]),
    },
    {
      title: 'Figures',
      headings: ['suite', 'what', 'value'],
      rows: figures.map(({ suite, name, value }) => [suite, name, value]),
    },
  ];
  return tables.filter((table) => table.rows.length > 0);
}

/** Only the aims of the suites that ran. */
function aimTable({ reached }: Pick<Results, 'reached'>): Table {
  const headings = ['path', 'against', '>aim', '>dreamt of', '>reached', '>from to', '>by CPU', ''];
  const rows = AIMS.flatMap((aim) => {
    const found = reached.find((one) => one.aim === aim.id);
    if (found === undefined) return [];
    const { value, byCpu, missing } = found;
    const sign = aim.unit === 'times' ? '≥ ' : '≤ ';
    const marks = [aim.aim, aim.dream].map((mark) => (mark === undefined ? '' : sign + inUnit(aim, mark)));
    const got = value ? inUnit(aim, value.median) : '–';
    const between = value && value.min < value.max ? `${inUnit(aim, value.min)} to ${inUnit(aim, value.max)}` : '';
    const end = missing === undefined ? standing(aim, found) : `not measured: ${missing}`;
    return [[aim.path, aim.against, ...marks, got, between, byCpu === undefined ? '' : number(byCpu, 2), end]];
  });
  return { title: 'Aims', headings, rows };
}

/** Nothing where there was one round only. */
function range({ min, max }: Spread, digits: number): string {
  return min < max ? `${number(min, digits)} to ${number(max, digits)}` : '';
}

export function number(value: number | undefined, digits: number): string {
  if (value === undefined || Number.isNaN(value)) return '–';
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The aims come last, where they are seen. */
export function asText(results: Results, coloured: boolean): string {
  const bold = (text: string) => (coloured ? styleText('bold', text) : text);
  const parts = [results.machine.map(([name, value]) => `${name}: ${value}`).join('\n')];
  for (const table of tablesOf(results).toReversed()) parts.push(bold(table.title), asLines(table));
  if (results.notes.length > 0) parts.push(results.notes.map((note) => `- ${note}`).join('\n'));
  const text = parts.join('\n\n');
  return coloured ? text.replaceAll('MISSED', styleText(['bold', 'red'], 'MISSED')) : text;
}
