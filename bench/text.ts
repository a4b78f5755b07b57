/** The results as text: one sentence, one table, and the rest by `--details`. */
import { number, range, type Spread, spreadText } from './numbers.ts';
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
  const [claims, noisy]: string[][] = [[], []];
  const say = ({ tooNoisy }: Spread, what: string, claim: string) => (tooNoisy ? noisy.push(what) : claims.push(claim));
  const on = row.path === PAGES ? `(${PAGES} among 100,000 animals)` : `(${row.path})`;
  say(row.perSecond, `requests a second ${on}`, `answered ${rateInWords(row)} requests a second ${on}`);
  const { throughput, cpu } = besideOf(rows, row.path) ?? {};
  const ratio = [throughput, cpu].find((one) => one?.tooNoisy === false) ?? throughput ?? cpu;
  const how = `${ratio === cpu ? ' by CPU time' : ''}${claims.length > 0 ? '' : ` ${on}`}`;
  const bare = `${PEERS.bare.name} does with the same bytes`;
  if (ratio) say(ratio, `the ratio to ${PEERS.bare.name}`, `did ${number(ratio.median, 2)} of what ${bare}${how}`);
  if (row.latency?.isAtMost === false && !row.perSecond.tooNoisy) {
    const rate = `${number(row.latency.perSecond)} requests a second`;
    claims.push(`answered 99 of 100 within ${latencyText(row, 'p99')} ms at ${rate}`);
  }
  const create = own.find((one) => one !== row && one.path === CREATE);
  const added = create && `added ${rateInWords(create)} animals a second, each on the disk before its reply`;
  if (added) say(create.perSecond, 'animals added a second', added);
  const results = claims.length > 0 ? `${SERVICE} ${claims.join('; it ')}. ` : '';
  return `${results}${noisy.length > 0 ? `Too noisy to say: ${noisy.join('; ')}.` : ''}`.trim();
}

const rateInWords = ({ perSecond, loadIsLimit }: Row) => {
  return `${loadIsLimit ? 'at least ' : ''}${number(perSecond.median)}`;
};

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
  const digits = unit === 's' || unit === '×' ? 2 : value.median >= 1_000 ? 0 : 1;
  return `${sign}${spreadText(value, digits)} ${unit}`;
}

function detailTable({ rows }: Results): Table {
  return {
    title: 'Everything measured: medians (and quartiles)',
    headings: ['', 'subject', '>connections', '>requests/s', '>CPU µs', '>p50 ms', '>p99 ms', '>longest ms'],
    rows: rows.map((row) => [
      ...[row.path, row.subject, number(row.connections)],
      ...[
        withQuartiles(rateText(row), row.perSecond, 0),
        withQuartiles(spreadText(row.cpuMicros, 1), row.cpuMicros, 1),
      ],
      ...(['p50', 'p99', 'max'] as const).map((key) => latencyText(row, key)),
    ]),
  };
}

const withQuartiles = (text: string, value: Spread | undefined, digits: number) => {
  return value === undefined || value.tooNoisy ? text : `${text} (${range(value, digits)})`;
};

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
