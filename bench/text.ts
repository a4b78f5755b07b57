/** The results as text: one sentence, one table, and the rest by `--details`. */
import { number, range, spreadText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Figure, Results, Row } from './results.ts';
import { SERVICE } from './service.ts';

export interface Table {
  title: string;
  /** A heading that begins with `>` stands over numbers. */
  headings: string[];
  rows: string[][];
}

const PAGES = 'list, pages at random';
const CREATE = 'create, durable';

const LEGEND = [
  'Lists have 20 of 100,000 animals a page. One animal: 1,000 ids at random among them, each read once before the timing.',
  'p50, p99: latency at 1,000 requests a second, from the moment when each was due. CPU µs: server CPU time a request.',
  `of ${PEERS.bare.name}: requests a second, divided by those of plain node:http that does nothing but send the same bytes.`,
  'by CPU: the same by CPU time a request, which other programs on the machine disturb less. Above 1, petstore is better.',
];

/** What marks of the table stand for, of those that are in it. */
const MARKS = {
  noisy:
    'noisy a–b: too noisy to be a result; half of the rounds lay between a and b. More time may help: --rounds 20.',
  '≥': '≥: at least; the load generator, and not the server, was the limit, so there is no ratio.',
  '≤': '≤: at most; the load generator sent requests late, and that delay is part of the figure.',
};

export function legendOf({ rows }: Table): string[] {
  const cells = rows.flat();
  const used = Object.entries(MARKS).filter(([mark]) => cells.some((cell) => cell.includes(mark)));
  return [...LEGEND, ...used.map(([, text]) => text)];
}

/** What the run says, in words. A figure that is too noisy is no result. */
export function sentence({ rows }: Results): string {
  const own = rows.filter(({ subject, part }) => subject === SERVICE && part !== 'scale');
  const row = own.find(({ path }) => path === PAGES) ?? own[0];
  if (row === undefined) return '';
  const what = row.path === PAGES ? `${row.path} among 100,000 animals` : row.path;
  const claims = row.perSecond.tooNoisy
    ? [`Too noisy to say how many requests a second ${SERVICE} answers (${what})`]
    : [`${SERVICE} answered ${rateInWords(row)} requests a second (${what})`];
  claims.push(besideBare(rows, row));
  if (row.latency?.isAtMost === false && !row.perSecond.tooNoisy) {
    claims.push(`at ${number(row.latency.perSecond)} a second, 99 of 100 came within ${latencyText(row, 'p99')} ms`);
  }
  const create = own.find((one) => one !== row && one.path === CREATE);
  if (create?.perSecond.tooNoisy) claims.push('too noisy to say how many animals a second it adds');
  else if (create) claims.push(`it added ${rateInWords(create)} animals a second, each on the disk before its reply`);
  return `${claims.filter(Boolean).join('; ')}.`;
}

const rateInWords = ({ perSecond, loadIsLimit }: Row) => {
  return `${loadIsLimit ? 'at least ' : ''}${number(perSecond.median)}`;
};

function besideBare(rows: Row[], { path }: Row): string {
  const { throughput, cpu } = besideOf(rows, path) ?? {};
  const bare = `what ${PEERS.bare.name} does with the same bytes`;
  if (throughput && !throughput.tooNoisy) return `it does ${number(throughput.median, 2)} of ${bare}`;
  if (cpu && !cpu.tooNoisy) return `by CPU time it does ${number(cpu.median, 2)} of ${bare}`;
  return throughput || cpu ? `too noisy to compare it with ${bare}` : '';
}

const besideOf = (rows: Row[], path: string) => {
  return rows.find((row) => row.path === path && row.subject === PEERS.bare.name)?.service;
};

/** The table that stands by itself: the service's rows. */
export function mainTable({ rows }: Results): Table {
  const own = rows.filter(({ subject, part }) => subject === SERVICE && part !== 'scale');
  return {
    title: SERVICE,
    headings: ['', '>requests/s', '>p50 ms', '>p99 ms', '>CPU µs', `>of ${PEERS.bare.name}`, '>by CPU'],
    rows: own.map((row) => {
      const beside = besideOf(rows, row.path);
      const latency = [latencyText(row, 'p50'), latencyText(row, 'p99')];
      const ratios = [spreadText(beside?.throughput, 2), spreadText(beside?.cpu, 2)];
      return [row.path, rateText(row), ...latency, spreadText(row.cpuMicros, 1), ...ratios];
    }),
  };
}

export function latencyText({ latency }: Pick<Row, 'latency'>, key: 'p50' | 'p99' | 'max'): string {
  if (latency === undefined) return '–';
  return `${latency.isAtMost ? '≤ ' : ''}${number(latency[key], latency[key] < 10 ? 2 : 0)}`;
}

export function rateText({ perSecond, loadIsLimit }: Row): string {
  return `${loadIsLimit ? '≥ ' : ''}${spreadText(perSecond, 0)}`;
}

export function peerTable({ rows }: Results): Table {
  const others = rows.filter(({ subject, service }) => service !== undefined && subject !== PEERS.bare.name);
  return {
    title: `${SERVICE} against others: requests a second, as a multiple of theirs`,
    headings: ['', 'against', '>times', '>by CPU', 'which leaves out'],
    rows: others.map(({ path, subject, service, leavesOut = '' }) => {
      return [path, subject, spreadText(service?.throughput, 2), spreadText(service?.cpu, 2), leavesOut];
    }),
  };
}

export function figureTable({ figures }: Results): Table {
  const rows = figures.map((figure) => [figure.path, figure.against, figureText(figure)]);
  return { title: 'More figures', headings: ['', 'against', '>'], rows };
}

function figureText({ value, unit, against }: Figure): string {
  const sign = against !== '' && unit !== '×' && value.median >= 0 && !value.tooNoisy ? '+' : '';
  return `${sign}${spreadText(value, unit === 's' || unit === '×' ? 2 : 1)} ${unit}`.trimEnd();
}

function detailTable({ rows }: Results): Table {
  return {
    title: 'Everything measured: medians, and quartiles beside them',
    headings: ['', 'subject', '>connections', '>requests/s', '>', '>CPU µs', '>', '>p50 ms', '>p99 ms', '>longest ms'],
    rows: rows.map((row) => [
      ...[row.path, row.subject, number(row.connections)],
      ...[`${row.loadIsLimit ? '≥ ' : ''}${number(row.perSecond.median)}`, range(row.perSecond, 0)],
      ...[number(row.cpuMicros?.median, 1), row.cpuMicros ? range(row.cpuMicros, 1) : ''],
      ...(['p50', 'p99', 'max'] as const).map((key) => latencyText(row, key)),
    ]),
  };
}

export function asText(results: Results, details: boolean): string {
  const main = mainTable(results);
  const more = [peerTable(results), figureTable(results), ...(details ? [detailTable(results)] : [])];
  const parts = [
    sentence(results),
    ...(main.rows.length > 0 ? [alignedTable(main), legendOf(main).join('\n')] : []),
    ...more.filter(({ rows }) => rows.length > 0).map((table) => `${table.title}\n${alignedTable(table)}`),
    results.notes.map((note) => `- ${note}`).join('\n'),
    machineLines(results).join('\n'),
  ];
  return parts.filter(Boolean).join('\n\n');
}

export const machineLines = ({ machine }: Results) => Object.entries(machine).map(([name, text]) => `${name}: ${text}`);

function alignedTable({ headings, rows }: Table): string {
  const isNumber = headings.map((heading) => heading.startsWith('>'));
  const all = [headings.map((heading) => heading.replace('>', '')), ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => row[at].length)));
  const cell = (text: string, at: number) => (isNumber[at] ? text.padStart(widths[at]) : text.padEnd(widths[at]));
  return all.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}
