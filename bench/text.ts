/** The results as text: the result in words, and tables. */
import { LOAD } from './machine.ts';
import { intervalText, number, type Spread, spreadText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Results, Row } from './results.ts';
import { SERVICE } from './service.ts';

const PAGES = 'list, pages at random';
const CREATE = 'create, durable';

const LEGEND = `Lists have 20 of 100,000 animals a page; the rare status is that of one in 40. One animal: 1,000 ids at random among them.
Requests/s: with 32 connections, creates with 64. CPU µs: server CPU time a request.
p50, p99: latency at 1,000 requests a second, from the moment when each was due; of servers that answer twice as many.
Ratios: above 1, ${SERVICE} is faster than ${PEERS.bare.name}, which does nothing but send the same bytes.
By CPU: by requests a second of CPU time, which other programs on the machine disturb less.
In brackets: the interval in which the true median lies, with 95 %.
noisy a–b: this interval is wider than a tenth of the median: no result, and – in the first table. --rounds 30 may narrow it.
≥: at least; the load generator, and not the server, was the limit, so there is no ratio by requests/s.
≤: at most; the load generator sent requests late, and that delay is part of the figure.`;

const ownRows = ({ rows }: Results) => rows.filter(({ subject }) => subject === SERVICE);

function beside({ rows }: Results, path: string, subject: string): Row['service'] {
  return rows.find((row) => row.path === path && row.subject === subject)?.service;
}

/** What holds, in words. A figure that is too noisy is left out. */
export function sentence(results: Results): string {
  const own = ownRows(results);
  const row = own.find(({ path }) => path === PAGES) ?? own[0];
  const create = own.find((one) => one !== row && one.path === CREATE);
  const claim = (figure: Spread | undefined, text: string, words: string) => holds(figure) && `${text} ${words}`;
  const cpu = beside(results, row.path, PEERS.bare.name)?.cpu;
  const { latency } = row;
  const within = latency && `ms at ${number(latency.perSecond)} requests a second`;
  const claims = [
    claim(row.perSecond, rateText(row), 'requests a second'),
    within && claim(latency.p50, `half of the replies within ${latencyText(row, 'p50')}`, within),
    within && claim(latency.p99, `99 of 100 within ${latencyText(row, 'p99')}`, within),
    claim(row.cpuMicros, spreadText(row.cpuMicros, 1), 'µs of CPU time a request'),
    claim(cpu, `${spreadText(cpu, 2)} times as fast as ${PEERS.bare.name}`, 'with the same bytes, by CPU time'),
    create && claim(create.perSecond, rateText(create), 'animals added a second, each synced before its reply'),
  ].filter(Boolean);
  return `${SERVICE} (${row.path}): ${claims.length > 0 ? claims.join('; ') : 'no figure holds on this machine just now'}.`;
}

const holds = (figure: Spread | undefined): boolean => figure?.tooNoisy === false;

/** The figures that hold, as they stand in the README. */
function resultTable(results: Results): string {
  const rows = ownRows(results).map((row) => {
    const cpu = beside(results, row.path, PEERS.bare.name)?.cpu;
    const cells: [Spread | undefined, string][] = [
      [row.perSecond, rateText(row)],
      [row.latency?.p50, latencyText(row, 'p50')],
      [row.cpuMicros, spreadText(row.cpuMicros, 1)],
      [cpu, spreadText(cpu, 2)],
    ];
    return [row.path, ...cells.map(([figure, text]) => (holds(figure) ? text : '–'))];
  });
  const headings = ['', '>requests/s', '>p50 ms', '>CPU µs', `>times ${PEERS.bare.name}, by CPU`];
  const { Machine: machine, Date: date, [LOAD]: load } = results.machine;
  return `${markdown(headings, rows)}\n\n${machine}; ${date}; ${LOAD.toLowerCase()}: ${load}`;
}

function latencyText({ latency }: Row, key: 'p50' | 'p99'): string {
  return latency ? `${latency.isAtMost ? '≤ ' : ''}${spreadText(latency[key], 2)}` : '–';
}

function rateText({ perSecond, loadIsLimit }: Row): string {
  return `${loadIsLimit ? '≥ ' : ''}${spreadText(perSecond, 0)}`;
}

/** Every figure, with its interval where it does not hold. */
function fullTable({ rows }: Results): string {
  const cells = rows.map((row) => [
    row.path,
    row.subject,
    rateText(row),
    latencyText(row, 'p50'),
    latencyText(row, 'p99'),
    spreadText(row.cpuMicros, 1),
    intervalText(row.service?.cpu, 2),
    intervalText(row.service?.throughput, 2),
    row.leavesOut ?? '',
  ]);
  const figures = ['>requests/s', '>p50 ms', '>p99 ms', '>CPU µs', `>${SERVICE}, times by CPU`, '>by requests/s'];
  return `All figures\n\n${markdown(['', 'server', ...figures, 'which leaves out'], cells)}`;
}

function figureTable({ figures }: Results): string {
  const rows = figures.map(({ path, against, more, unit }) => {
    return [path, against, `${more < 0 ? '' : '+'}${number(more, 1)} ${unit}`];
  });
  return rows.length === 0 ? '' : markdown(['', 'against', '>'], rows);
}

/** Of a run with one row or more. */
export function asText(results: Results): string {
  const parts = [
    ...[sentence(results), resultTable(results), fullTable(results), LEGEND, figureTable(results)],
    Object.entries(results.machine)
      .map(([name, text]) => `${name}: ${text}`)
      .join('\n'),
  ];
  return parts.filter(Boolean).join('\n\n');
}

/** A table for people and for documents alike. A heading that begins with `>` stands over numbers. */
function markdown(headings: string[], rows: string[][]): string {
  const isNumber = headings.map((heading) => heading.startsWith('>'));
  const all = [headings.map((heading) => heading.replace('>', '')), ...rows];
  const widths = headings.map((_, at) => Math.max(...all.map((row) => row[at].length)));
  const rule = widths.map((width, at) => (isNumber[at] ? `${'-'.repeat(width)}:` : '-'.repeat(width + 1)));
  const cell = (text: string, at: number) => (isNumber[at] ? text.padStart(widths[at]) : text.padEnd(widths[at]));
  const lines = all.map((row) => `| ${row.map(cell).join(' | ')} |`);
  return [lines[0], `|${rule.map((text) => `-${text}`).join('|')}|`, ...lines.slice(1)].join('\n');
}
