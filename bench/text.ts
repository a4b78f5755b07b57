/** The results as text: one sentence, one table, and the rest by `--details`; and as Markdown for the documents. */
import { AIMS, aimTexts, isOf, isReached } from './aims.ts';
import { isNoisy, number, range, ratioText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Figure, Ratio, Results, Row } from './results.ts';
import { SERVICE } from './service.ts';

export interface Table {
  title: string;
  /** A heading that begins with `>` stands over numbers. */
  headings: string[];
  rows: string[][];
}

export const LEGEND = [
  `of ${PEERS.bare.name}: requests a second as a part of those of plain node:http that sends the same bytes and does`,
  'nothing else, both loaded in turn in this run; by CPU: the same from server CPU time a request, which other programs',
  'disturb less. Above 1, petstore is better. p50, p99: at 1,000 requests a second, from the moment each was due; "≤": the',
  'load generator itself was late, which is part of it. "≥": the load generator was the limit. A range: the quartiles of a',
  'figure that is too noisy.',
];

/** What the run says, in words. */
export function sentence({ rows, ratios }: Results): string {
  const own = (path: string) => rows.find((row) => row.path === path && row.subject === SERVICE);
  const list =
    own('list, pages at random') ?? rows.find(({ subject, part }) => subject === SERVICE && part !== 'scale');
  if (list === undefined) return '';
  const ratio = ratios.find(({ path, against }) => path === list.path && against === PEERS.bare.name);
  const create = list.path === 'create, durable' ? undefined : own('create, durable');
  const what = list.path === 'list, pages at random' ? `${list.path} among 100,000 animals` : list.path;
  const parts = [`${SERVICE} answered ${rate(list)} requests a second (${what})${ratio ? beside(ratio) : ''}`];
  if (list.latency?.isAtMost === false) {
    parts.push(`at ${number(list.latency.perSecond)} a second, 99 of 100 within ${latencyText(list, 'p99')} ms`);
  }
  if (create) parts.push(`it added ${rate(create)} animals a second, each on the disk before its reply`);
  return `${parts.join('; ')}.`;
}

function beside({ throughput, cpu }: Ratio): string {
  if (isNoisy(throughput) && (cpu === undefined || isNoisy(cpu))) return '; too noisy to compare with bare node:http';
  const [value, how] = isNoisy(throughput) ? [cpu!, ', by CPU time,'] : [throughput, ''];
  return `, which is${how} ${number(value.median, 2)} of what bare node:http does with the same bytes`;
}

const rate = ({ perSecond, loadIsLimit }: Row) => `${loadIsLimit ? 'at least ' : ''}${number(perSecond.median)}`;

/** The table that stands by itself: the service's rows. */
export function mainTable({ rows, ratios }: Results): Table {
  const headings = ['', '>requests/s', '>p50 ms', '>p99 ms', '>CPU µs', `>of ${PEERS.bare.name}`, '>by CPU'];
  const own = rows.filter(({ subject, part }) => subject === SERVICE && part !== 'scale');
  return {
    title: SERVICE,
    headings,
    rows: own.map((row) => {
      const bare = ratios.find(({ path, against }) => path === row.path && against === PEERS.bare.name);
      return [
        row.path,
        rateText(row),
        latencyText(row, 'p50'),
        latencyText(row, 'p99'),
        number(row.cpuMicros?.median, 1),
        bare?.loadIsLimit ? 'limited by the load' : ratioText(bare?.throughput),
        ratioText(bare?.cpu),
      ];
    }),
  };
}

export function latencyText({ latency }: Pick<Row, 'latency'>, key: 'p50' | 'p99' | 'max'): string {
  if (latency === undefined) return '–';
  return `${latency.isAtMost ? '≤ ' : ''}${number(latency[key], latency[key] < 10 ? 2 : 0)}`;
}

/** Quartiles that lie wide apart stand in place of the median. */
export function rateText({ perSecond, loadIsLimit }: Row): string {
  if (loadIsLimit) return `≥ ${number(perSecond.median)}`;
  return isNoisy(perSecond) ? range(perSecond, 0) : number(perSecond.median);
}

export function peerTable({ ratios, leftOut }: Results): Table {
  const others = ratios.filter(({ against }) => against !== PEERS.bare.name);
  return {
    title: `${SERVICE} against others: requests a second, as a multiple of theirs`,
    headings: ['', 'against', '>times', '>by CPU', 'which leaves out'],
    rows: others.map(({ path, against, throughput, cpu, loadIsLimit }) => [
      ...[path, against, `${loadIsLimit ? '≥ ' : ''}${ratioText(throughput)}`, ratioText(cpu), leftOut[against] ?? ''],
    ]),
  };
}

export function figureTable({ figures }: Results): Table {
  const rows = figures.map((figure) => [figure.path, figure.against ?? '', figureText(figure), quartiles(figure)]);
  return { title: 'Figures', headings: ['', 'against', '>median', '>quartiles'], rows };
}

function figureText({ value, unit, against }: Figure): string {
  const sign = against !== undefined && unit !== '×' && value.median >= 0 ? '+' : '';
  return `${sign}${number(value.median, unit === 's' || unit === '×' ? 2 : 1)} ${unit}`;
}

function quartiles({ value }: Figure): string {
  return value.low < value.high ? range(value, 2) : '';
}

function detailTable({ rows }: Results): Table {
  return {
    title: 'Everything measured, with quartiles',
    headings: ['', 'subject', '>connections', '>requests/s', '>', '>CPU µs', '>', '>p50 ms', '>p99 ms', '>longest ms'],
    rows: rows.map(({ path, subject, connections, perSecond, cpuMicros, latency, loadIsLimit }) => [
      ...[path, subject, number(connections), number(perSecond.median)],
      `${range(perSecond, 0)}${loadIsLimit ? ' (load is the limit)' : ''}`,
      ...[number(cpuMicros?.median, 1), cpuMicros ? range(cpuMicros, 1) : ''],
      ...(['p50', 'p99', 'max'] as const).map((key) => latencyText({ latency }, key)),
    ]),
  };
}

export function asText(results: Results, details: boolean): string {
  const tables = [mainTable(results), peerTable(results), figureTable(results)];
  if (details) tables.push(detailTable(results));
  const [first, ...more] = tables.map(asLines);
  const parts = [sentence(results), first && `${first}\n\n${LEGEND.join('\n')}`];
  for (const [at, lines] of more.entries()) if (lines) parts.push(`${tables[at + 1].title}\n${lines}`);
  if (results.notes.length > 0) parts.push(results.notes.map((note) => `- ${note}`).join('\n'));
  const facts = results.machine.map(([name, value]) => (details ? `${name}: ${value}` : value));
  parts.push(details ? facts.join('\n') : facts.join(' · '));
  return parts.filter(Boolean).join('\n\n');
}

/** Nothing for a table without rows. */
function asLines({ headings, rows }: Table): string {
  if (rows.length === 0) return '';
  const isNumber = headings.map((heading) => heading.startsWith('>'));
  const all = [headings.map((heading) => heading.replace('>', '')), ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => row[at].length)));
  const cell = (text: string, at: number) => (isNumber[at] ? text.padStart(widths[at]) : text.padEnd(widths[at]));
  return all.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}

/** The first table for the README; the second, with the aims, for the page on speed. */
export function asMarkdown(results: Results): string {
  const when = results.machine.map(([, value]) => value).join(' · ');
  const aims = AIMS.flatMap((aim) => {
    const ratio = results.ratios.find((one) => isOf(aim, one));
    const figure = results.figures.find((one) => isOf(aim, one));
    const value = ratio?.throughput ?? figure?.value;
    if (value === undefined) return [];
    const text = ratio ? ratioText(value) : figureText(figure!);
    const verdict = isReached(aim, value) || isNoisy(value) ? '' : ' **missed**';
    return [[aim.path, aim.against, ...aimTexts(aim), `${text}${verdict}`, ratioText(ratio?.cpu)]];
  });
  const headings = ['path', 'against', '>aim', '>hoped for', '>measured', '>by CPU'];
  const tables = [mainTable(results), { title: '', headings, rows: aims }];
  return [...tables.filter(({ rows }) => rows.length > 0).map(markdownTable), when].join('\n\n');
}

function markdownTable({ headings, rows }: Table): string {
  const head = headings.map((heading) => heading.replace('>', ''));
  const rule = headings.map((heading) => (heading.startsWith('>') ? '---:' : '---'));
  return [head, rule, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
}
