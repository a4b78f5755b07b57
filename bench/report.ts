/** The results as one page that needs nothing else: no script, no font, no picture from elsewhere. */
import type { Results } from './bench.ts';
import { PEERS } from './peers.ts';
import { drawPlots } from './plots.ts';
import { type Table, tablesOf } from './table.ts';

const ABOUT: Record<string, string> = {
  Aims: 'Ratios are of what was measured in turn, round by round. By CPU: the same from server CPU time a request.',
  Throughput: 'Requests a second at saturation; the line on each bar is the spread over the rounds.',
  'Latency at a fixed rate': 'Each request counts from when it was due, so that a stall shows in all that it held up.',
  Growth: 'One load for each point; the ratios under Aims were taken in turn.',
  'The others': 'What they leave out, and the service does.',
};
const NO_PLOTS = '<p>No plots: the library that draws them is not installed in bench.</p>';

export async function asPage(results: Results): Promise<string> {
  const [aims, ...tables] = tablesOf(results);
  const plots = await drawPlots(results);
  const peers = Object.values(PEERS).map(({ name, leavesOut }): [string, string] => [name, leavesOut]);
  const notes = results.notes.map((note) => `<li>${escapeHtml(note)}</li>`).join('');
  const parts = [
    '<h1>petstore: how fast, and against what</h1>',
    facts(results.machine),
    aims === undefined ? '' : section(aims.title, htmlTable(aims)),
    plots === undefined ? NO_PLOTS : '',
    section('Throughput', charts(plots?.throughput)),
    section('Latency at a fixed rate', charts(plots?.latency)),
    section('Growth', charts(plots?.growth)),
    ...tables.map((table) => section(table.title, htmlTable(table))),
    section('The others', facts(peers)),
    section('Notes', notes && `<ul>${notes}</ul>`),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>petstore: benchmarks</title><style>${STYLE}</style></head><body><main>
${parts.join('\n')}
</main></body></html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function facts(pairs: [name: string, value: string][]): string {
  const cells = pairs.map(([name, value]) => `<div><dt>${escapeHtml(name)}</dt><dd>${escapeHtml(value)}</dd></div>`);
  return `<dl>${cells.join('')}</dl>`;
}

function section(title: string, content: string): string {
  if (content === '') return '';
  return `<section><h2>${title}</h2>${ABOUT[title] ? `<p>${ABOUT[title]}</p>` : ''}${content}</section>`;
}

function charts(figures: string[] = []): string {
  return figures.length === 0 ? '' : `<div class="charts">${figures.join('')}</div>`;
}

function htmlTable({ headings, rows }: Table): string {
  const sides = headings.map((heading) => (heading.startsWith('>') ? 'right' : 'left'));
  const head = headings.map((heading, i) => `<th class="${sides[i]}">${escapeHtml(heading.replace('>', ''))}</th>`);
  const cell = (text: string, i: number) => `<td class="${sides[i]}${mark(text)}">${escapeHtml(text)}</td>`;
  const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n');
  return `<div class="wide"><table><thead><tr>${head.join('')}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function mark(text: string): string {
  if (text === 'MISSED') return ' missed';
  return text === 'reached' || text === 'dreamt of' ? ' met' : '';
}

const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #5b6675; --rule: #dde2e9; --bad: #b3261e;
  --good: #1b7a3d; --s0: #1668c7; --s1: #6b7686; --s2: #b85309; --s3: #1b7a3d; --s4: #8b3fb0; --s5: #a3224f; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6eaf0; --soft: #9aa6b5; --rule: #2a323d;
  --bad: #ff8a80; --good: #6fd08c; --s0: #5aa7ff; --s1: #a2adbb; --s2: #ffa05c; --s3: #6fd08c; --s4: #d59bf0;
  --s5: #ff8fb1; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 16px; } h2 { font-size: 19px; margin: 44px 0 8px; }
p { color: var(--soft); margin: 0 0 14px; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 10px 28px; margin: 0; }
dt { color: var(--soft); font-size: 12.5px; } dd { margin: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13.5px; }
th, td { padding: 5px 18px 5px 0; border-bottom: 1px solid var(--rule); white-space: nowrap; text-align: left; }
th { color: var(--soft); font-weight: 500; } .right { text-align: right; }
.missed { color: var(--bad); font-weight: 600; } .met { color: var(--good); font-weight: 600; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(480px, 100%), 1fr)); gap: 28px 36px; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: 6px; } svg { width: 100%; height: auto; font-size: 13px; }
`;
