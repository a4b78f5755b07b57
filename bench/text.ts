/** The results as text: the result in words, tables, and where the CPU time of a request goes. */
import { intervalText, number, spreadText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Results, Row } from './results.ts';
import { SERVICE } from './service.ts';

const ONE_PAGE = 'list, one page';
const PAGES = 'list, pages at random';
const CREATE = 'create, durable';
const BAR_CHARACTERS = 60;

const LEGEND = `Lists have 20 of 100,000 animals a page. One animal: 1,000 ids at random among them, each read once before the timing.
Requests/s: with 32 connections, creates with 64. CPU µs: server CPU time a request.
p50, p99: latency at 1,000 requests a second, from the moment when each was due; of servers that answer twice as many.
Ratios: above 1, ${SERVICE} is faster than ${PEERS.bare.name}, which does nothing but send the same bytes.
By CPU: by requests a second of CPU time, which other programs on the machine disturb less.
In brackets: the interval in which the true median lies, with 95 %.
noisy a–b: this interval is wider than a tenth of the median: no result. More rounds may narrow it: --rounds 30.
≥: at least; the load generator, and not the server, was the limit, so there is no ratio by requests/s.
≤: at most; the load generator sent requests late, and that delay is part of the figure.`;

const ownRows = ({ rows }: Results) => rows.filter(({ subject }) => subject === SERVICE);

function beside({ rows }: Results, path: string, subject: string): Row['service'] {
  return rows.find((row) => row.path === path && row.subject === subject)?.service;
}

/** A figure that is too noisy has only its interval here, too. */
export function sentence(results: Results): string {
  const own = ownRows(results);
  const row = own.find(({ path }) => path === PAGES) ?? own[0];
  const create = own.find((one) => one !== row && one.path === CREATE);
  const cpu = beside(results, row.path, PEERS.bare.name)?.cpu;
  const claims = [
    `${rateText(row)} requests a second`,
    row.latency && `99 of 100 within ${latencyText(row, 'p99')} ms at ${number(row.latency.perSecond)} a second`,
    row.cpuMicros && `${spreadText(row.cpuMicros, 1)} µs of CPU time a request`,
    cpu && `${spreadText(cpu, 2)} times as fast as ${PEERS.bare.name} with the same bytes, by CPU time`,
    create && `${rateText(create)} animals added a second, each synced to its file before the reply`,
  ];
  return `${SERVICE} (${row.path}): ${claims.filter(Boolean).join('; ')}.`;
}

/** Whose the CPU time of a list request is, by two servers that do less; empty where the run does not tell. */
export function shares(results: Results): string {
  const floor = beside(results, ONE_PAGE, PEERS.floor.name)?.cpu;
  const bare = beside(results, ONE_PAGE, PEERS.bare.name)?.cpu;
  const whole = ownRows(results).find(({ path }) => path === ONE_PAGE)?.cpuMicros;
  if (!floor || !bare || !whole || floor.tooNoisy || bare.tooNoisy) return '';
  if (floor.median > bare.median || bare.median > 1) return '';
  const parts = [
    { name: 'the kernel and node:net', share: floor.median, letter: '░' },
    { name: 'node:http', share: bare.median - floor.median, letter: '▒' },
    { name: 'the service', share: 1 - bare.median, letter: '█' },
  ];
  const texts = parts.map(({ name, share, letter }) => {
    return `${letter} ${name} ${number(share * whole.median, 1)} µs (${number(100 * share)} %)`;
  });
  const bar = parts.map(({ share, letter }) => letter.repeat(Math.round(share * BAR_CHARACTERS))).join('');
  const how = `${PEERS.floor.name} that parses nothing takes the first part, and ${PEERS.bare.name} the first two`;
  return `The CPU time of a request (${ONE_PAGE}): ${texts.join(', ')}; ${how}.\n\n${bar}`;
}

function mainTable(results: Results): string {
  const rows = ownRows(results).map((row) => {
    const { cpu, throughput } = beside(results, row.path, PEERS.bare.name) ?? {};
    const latency = [latencyText(row, 'p50'), latencyText(row, 'p99')];
    const ratios = [intervalText(cpu, 2), intervalText(throughput, 2)];
    return [row.path, rateText(row), ...latency, spreadText(row.cpuMicros, 1), ...ratios];
  });
  const ratios = [`>times as fast as ${PEERS.bare.name}, by CPU`, '>by requests/s'];
  return markdown(['', '>requests/s', '>p50 ms', '>p99 ms', '>CPU µs', ...ratios], rows);
}

function latencyText({ latency }: Row, key: 'p50' | 'p99'): string {
  return latency ? `${latency.isAtMost ? '≤ ' : ''}${spreadText(latency[key], 2)}` : '–';
}

function rateText({ perSecond, loadIsLimit }: Row): string {
  return `${loadIsLimit ? '≥ ' : ''}${spreadText(perSecond, 0)}`;
}

function otherTable({ rows }: Results): string {
  const others = rows.flatMap(({ service, ...row }) => {
    if (service === undefined) return [];
    const ratios = [intervalText(service.cpu, 2), intervalText(service.throughput, 2)];
    return [[row.path, row.subject, rateText(row), spreadText(row.cpuMicros, 1), ...ratios, row.leavesOut ?? '']];
  });
  const headings = ['', 'against', '>requests/s', '>CPU µs', '>times, by CPU', '>by requests/s', 'which leaves out'];
  return `The others, and how many times as fast ${SERVICE} is\n\n${markdown(headings, others)}`;
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
    ...[sentence(results), mainTable(results), LEGEND, shares(results), otherTable(results), figureTable(results)],
    results.notes.map((note) => `- ${note}`).join('\n'),
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
