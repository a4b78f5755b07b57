/** The results as text: the result in words, tables, and where the CPU time of a request goes. */
import { intervalText, number, type Spread, spreadText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Figure, Results, Row } from './results.ts';
import { SERVICE } from './service.ts';

export interface Table {
  title: string;
  /** A heading that begins with `>` stands over numbers. */
  headings: string[];
  rows: string[][];
}

const ONE_PAGE = 'list, one page';
const PAGES = 'list, pages at random';
const CREATE = 'create, durable';
const BAR_CHARACTERS = 60;

const LEGEND = [
  'Lists have 20 of 100,000 animals a page. One animal: 1,000 ids at random among them, each read once before the timing.',
  'p50, p99: latency at 1,000 requests a second, from the moment when each was due. CPU µs: server CPU time a request.',
  `Ratios: above 1, petstore is faster than ${PEERS.bare.name}, which does nothing but send the same bytes.`,
  'By CPU: by requests a second of CPU time, which other programs on the machine disturb less.',
  'In brackets: the interval in which the true median lies, with 95 %.',
];

/** What marks of the table stand for, of those that are in it. */
const MARKS = {
  noisy: 'noisy a–b: this interval is wider than a tenth of the median: no result. More rounds narrow it: --rounds 30.',
  '≥': '≥: at least; the load generator, and not the server, was the limit, so there is no ratio.',
  '≤': '≤: at most; the load generator sent requests late, and that delay is part of the figure.',
};

export function legendOf({ rows }: Table): string[] {
  const cells = rows.flat();
  const used = Object.entries(MARKS).filter(([mark]) => cells.some((cell) => cell.includes(mark)));
  return [...LEGEND, ...used.map(([, text]) => text)];
}

const ownRows = ({ rows }: Results) => rows.filter(({ subject, part }) => subject === SERVICE && part !== 'scale');

function beside({ rows }: Results, path: string, subject: string): Row['service'] {
  return rows.find((row) => row.path === path && row.subject === subject)?.service;
}

/** What the run says, in words. A figure that is too noisy is no result. */
export function sentence(results: Results): string {
  const own = ownRows(results);
  const row = own.find(({ path }) => path === PAGES) ?? own[0];
  if (row === undefined) return '';
  const rate = ({ loadIsLimit, perSecond }: Row) => `${loadIsLimit ? 'at least ' : ''}${number(perSecond.median)}`;
  const claims: string[] = [];
  const noisy: string[] = [];
  const say = (value: Spread | undefined, what: string, claim: (median: number) => string) => {
    if (value) value.tooNoisy ? noisy.push(what) : claims.push(claim(value.median));
  };
  say(row.perSecond, 'requests a second', () => `answered ${rate(row)} requests a second`);
  if (row.latency?.isAtMost === false) {
    claims.push(`answered 99 of 100 within ${latencyText(row, 'p99')} ms at ${number(row.latency.perSecond)} a second`);
  }
  say(row.cpuMicros, 'CPU time a request', (micros) => `took ${number(micros, 1)} µs of CPU time for each`);
  const { cpu, throughput } = beside(results, row.path, PEERS.bare.name) ?? {};
  say(cpu ?? throughput, `the ratio to ${PEERS.bare.name}`, (ratio) => {
    const by = cpu ? 'CPU time' : 'requests a second';
    return `was ${number(ratio, 2)} times as fast as ${PEERS.bare.name} with the same bytes, by ${by}`;
  });
  const create = own.find((one) => one !== row && one.path === CREATE);
  say(create?.perSecond, 'animals added a second', () => {
    return `added ${rate(create!)} animals a second, each on the disk before its reply`;
  });
  const result = claims.length > 0 ? `${SERVICE} (${row.path}) ${claims.join('; it ')}. ` : '';
  return `${result}${noisy.length > 0 ? `Too noisy to say: ${noisy.join('; ')}.` : ''}`.trim();
}

export interface Share {
  name: string;
  /** Of the CPU time of a request. */
  share: number;
  micros: number;
}

/** Whose the CPU time of a list request is, by two servers that do less; undefined where the run does not tell. */
export function sharesOf(results: Results): Share[] | undefined {
  const floor = beside(results, ONE_PAGE, PEERS.floor.name)?.cpu;
  const bare = beside(results, ONE_PAGE, PEERS.bare.name)?.cpu;
  const whole = ownRows(results).find(({ path }) => path === ONE_PAGE)?.cpuMicros;
  if (!floor || !bare || !whole || floor.tooNoisy || bare.tooNoisy) return undefined;
  if (floor.median > bare.median || bare.median > 1) return undefined;
  const shares = {
    'the kernel and node:net': floor.median,
    'node:http': bare.median - floor.median,
    'the service': 1 - bare.median,
  };
  return Object.entries(shares).map(([name, share]) => ({ name, share, micros: share * whole.median }));
}

export function sharesInWords(shares: Share[]): string {
  const parts = shares.map(({ name, share, micros }) => `${name} ${number(micros, 1)} µs (${number(100 * share)} %)`);
  const how = `${PEERS.floor.name} that parses nothing takes the first part, and ${PEERS.bare.name} the first two`;
  return `The CPU time of a request (${ONE_PAGE}): ${parts.join(', ')}; ${how}.`;
}

/** Each part as one letter, repeated: as wide as its share. */
function drawShares(shares: Share[]): string {
  const bars = shares.map(({ share }, at) => '░▒█'[at].repeat(Math.round(share * BAR_CHARACTERS)));
  return `${bars.join('')}  ${shares.map(({ name }, at) => `${'░▒█'[at]} ${name}`).join(', ')}`;
}

/** The table that stands by itself: the service's rows. */
export function mainTable(results: Results): Table {
  return {
    title: SERVICE,
    headings: ['', '>requests/s', '>p50 ms', '>p99 ms', '>CPU µs', `>of ${PEERS.bare.name}, by CPU`, '>by requests/s'],
    rows: ownRows(results).map((row) => {
      const { cpu, throughput } = beside(results, row.path, PEERS.bare.name) ?? {};
      const latency = [latencyText(row, 'p50'), latencyText(row, 'p99')];
      const ratios = [intervalText(cpu, 2), intervalText(throughput, 2)];
      return [row.path, rateText(row), ...latency, spreadText(row.cpuMicros, 1), ...ratios];
    }),
  };
}

function latencyText({ latency }: Row, key: 'p50' | 'p99'): string {
  return latency ? `${latency.isAtMost ? '≤ ' : ''}${number(latency[key], 2)}` : '–';
}

export function rateText({ perSecond, loadIsLimit }: Row): string {
  return `${loadIsLimit ? '≥ ' : ''}${spreadText(perSecond, 0)}`;
}

export function peerTable({ rows }: Results): Table {
  const others = rows.filter(({ service }) => service !== undefined);
  return {
    title: `The others, and how many times as fast ${SERVICE} is`,
    headings: ['', 'against', '>requests/s', '>CPU µs', '>times, by CPU', '>by requests/s', 'which leaves out'],
    rows: others.map((row) => {
      const { path, subject, cpuMicros, service, leavesOut = '' } = row;
      const ratios = [intervalText(service?.cpu, 2), intervalText(service?.throughput, 2)];
      return [path, subject, rateText(row), spreadText(cpuMicros, 1), ...ratios, leavesOut];
    }),
  };
}

export function figureTable({ figures }: Results): Table {
  const rows = figures.map((figure) => [figure.path, figure.against, figureText(figure)]);
  return { title: 'More figures', headings: ['', 'against', '>'], rows };
}

function figureText({ value, unit, against }: Figure): string {
  const sign = against !== '' && unit !== '×' && value.median >= 0 && !value.tooNoisy ? '+' : '';
  return `${sign}${spreadText(value, unit === 's' || unit === '×' ? 2 : 1)} ${unit}`;
}

export function asText(results: Results): string {
  const main = mainTable(results);
  const shares = sharesOf(results);
  const more = [peerTable(results), figureTable(results)].filter(({ rows }) => rows.length > 0);
  const parts = [
    sentence(results),
    ...(main.rows.length > 0 ? [markdown(main), legendOf(main).join('\n')] : []),
    ...(shares ? [sharesInWords(shares), drawShares(shares)] : []),
    ...more.map((table) => `${table.title}\n\n${markdown(table)}`),
    results.notes.map((note) => `- ${note}`).join('\n'),
    machineLines(results).join('\n'),
  ];
  return parts.filter(Boolean).join('\n\n');
}

export const machineLines = ({ machine }: Results) => Object.entries(machine).map(([name, text]) => `${name}: ${text}`);

/** A table for people and for documents alike. */
function markdown({ headings, rows }: Table): string {
  const isNumber = headings.map((heading) => heading.startsWith('>'));
  const all = [headings.map((heading) => heading.replace('>', '')), ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => row[at].length)));
  const rule = widths.map((width, at) => (isNumber[at] ? `${'-'.repeat(width)}:` : '-'.repeat(width + 1)));
  const cell = (text: string, at: number) => (isNumber[at] ? text.padStart(widths[at]) : text.padEnd(widths[at]));
  const lines = all.map((row) => `| ${row.map(cell).join(' | ')} |`);
  return [lines[0], `|${rule.map((text) => `-${text}`).join('|')}|`, ...lines.slice(1)].join('\n');
}
