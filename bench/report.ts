/** The results as one page that needs nothing else: no script, no font, no picture from elsewhere. */
import { escapeHtml } from './charts.ts';
import { growthCharts, latencyCharts, throughputCharts } from './drawings.ts';
import { PEERS } from './peers.ts';
import type { Results } from './results.ts';
import {
  AIM_COLUMNS,
  aimRows,
  type Column,
  FIGURE_COLUMNS,
  figureCells,
  GROWTH_COLUMNS,
  growthCells,
  RATIO_COLUMNS,
  ROW_COLUMNS,
  ratioCells,
  rowCells,
} from './table.ts';

const ABOUT_AIMS =
  'Times are ratios of what was measured in turn, round by round. By CPU: the same from processor time.';
const ABOUT_THROUGHPUT = 'Requests a second at saturation; the line on each bar is the spread over the rounds.';
const ABOUT_LATENCY = 'Each request counts from the moment it was due, so that a stall shows in all that it held up.';
const ABOUT_GROWTH = 'One load for each point; the ratios under Aims were taken in turn.';
const ABOUT_PEERS = 'What the others leave out, and the service does:';

export function asPage(results: Results): string {
  const { growth, ratios, rows, figures, notes } = results;
  const peers = Object.values(PEERS).map(({ name, leavesOut }): [string, string] => [name, leavesOut]);
  const noteList = notes.map((note) => `<li>${escapeHtml(note)}</li>`).join('');
  const parts = [
    '<h1>petstore: how fast, and against what</h1>',
    facts(machineFacts(results)),
    section('Aims', htmlTable(AIM_COLUMNS, aimRows(results)), ABOUT_AIMS),
    section('Throughput', charts(throughputCharts(results)), ABOUT_THROUGHPUT),
    section('Latency at a fixed rate', charts(latencyCharts(results)), ABOUT_LATENCY),
    section('Growth', charts(growthCharts(results)) + htmlTable(GROWTH_COLUMNS, growth.map(growthCells)), ABOUT_GROWTH),
    section('Ratios', htmlTable(RATIO_COLUMNS, ratios.map(ratioCells))),
    section('Everything measured', htmlTable(ROW_COLUMNS, rows.map(rowCells))),
    section('Figures', htmlTable(FIGURE_COLUMNS, figures.map(figureCells))),
    section('The others', facts(peers), ABOUT_PEERS),
    section('Notes', noteList && `<ul>${noteList}</ul>`),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>petstore: benchmarks</title><style>${STYLE}</style></head><body><main>
${parts.join('\n')}
</main></body></html>
`;
}

function machineFacts({ machine, rounds, secondsEach, began, tookSeconds }: Results): [string, string][] {
  return [
    ['Processor', `${machine.processor}, ${machine.cores} cores`],
    ['Memory', `${machine.memoryGb} GB`],
    ['System', machine.system],
    ['Node', machine.node],
    ['Load', machine.load],
    ['Cores', machine.pinned],
    ['Rounds', `${rounds} of ${secondsEach} s each, in turn (A B B A)`],
    ['Taken', `${began.slice(0, 16).replace('T', ' ')} UTC, in ${tookSeconds.toFixed(0)} s`],
  ];
}

function facts(pairs: [name: string, value: string][]): string {
  const cells = pairs.map(([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`);
  return `<dl>${cells.join('')}</dl>`;
}

function section(title: string, content: string, about = ''): string {
  if (content === '') return '';
  return `<section><h2>${title}</h2>${about && `<p>${about}</p>`}${content}</section>`;
}

function charts(figures: string): string {
  return figures && `<div class="charts">${figures}</div>`;
}

function htmlTable(columns: Column[], rows: string[][]): string {
  if (rows.length === 0) return '';
  const head = columns.map(({ heading, align }) => `<th class="${align}">${escapeHtml(heading)}</th>`).join('');
  const cell = (text: string, i: number) => `<td class="${columns[i].align}${mark(text)}">${escapeHtml(text)}</td>`;
  const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n');
  return `<div class="wide"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function mark(text: string): string {
  if (text === 'MISSED') return ' missed';
  return text === 'reached' || text === 'dreamt of' ? ' met' : '';
}

const COLOURS = [0, 1, 2, 3, 4, 5, 6];
const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #5b6675; --rule: #dde2e9; --bar: #b9c3d0;
  --ours: #1668c7; --bad: #b3261e; --good: #1b7a3d;
  --s0: #1668c7; --s1: #6b7686; --s2: #b85309; --s3: #1b7a3d; --s4: #8b3fb0; --s5: #a3224f; --s6: #0b7285; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6eaf0; --soft: #9aa6b5; --rule: #2a323d;
  --bar: #46525f; --ours: #5aa7ff; --bad: #ff8a80; --good: #6fd08c;
  --s0: #5aa7ff; --s1: #a2adbb; --s2: #ffa05c; --s3: #6fd08c; --s4: #d59bf0; --s5: #ff8fb1; --s6: #66d9e8; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 16px; } h2 { font-size: 19px; margin: 44px 0 8px; }
p { color: var(--soft); margin: 0 0 14px; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 10px 28px; margin: 0; }
dt { color: var(--soft); font-size: 12.5px; } dd { margin: 0; }
.wide { overflow-x: auto; } .charts + .wide { margin-top: 20px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13.5px; }
th, td { padding: 5px 18px 5px 0; border-bottom: 1px solid var(--rule); white-space: nowrap; text-align: left; }
th { color: var(--soft); font-weight: 500; } .right { text-align: right; }
.missed { color: var(--bad); font-weight: 600; } .met { color: var(--good); font-weight: 600; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)); gap: 28px 36px; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: 6px; }
svg { display: block; width: 100%; height: auto; font-size: 15px; }
text { font-variant-numeric: tabular-nums; }
.label, .value { fill: var(--ink); } .tick { fill: var(--soft); font-size: 14px; } .grid { stroke: var(--rule); }
.bar { fill: var(--bar); } .bar.ours { fill: var(--ours); } .spread { stroke: var(--ink); stroke-width: 1.5; }
.curve { fill: none; stroke-width: 2.5; }
${COLOURS.map((i) => `.curve.s${i} { stroke: var(--s${i}) } circle.s${i}, text.s${i} { fill: var(--s${i}) }`).join('\n')}
`;
