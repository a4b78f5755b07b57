/** The results as one page that needs nothing else: no script, no font, no picture from elsewhere. */
import { type Spread, spreadText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Results, Row } from './results.ts';
import { SERVICE } from './service.ts';
import * as texts from './text.ts';

/** What is drawn: a solid bar from zero to the median, or hatched from `low` to `high` where it is too noisy. */
type Bar = Spread | undefined;

const HATCHED = 'Hatched bars: the range of a noisy figure, or up to an upper bound (≤).';

export function asPage(results: Results): string {
  const rows = results.rows.filter(({ part }) => part !== 'scale');
  const main = texts.mainTable(results);
  const parts = [
    `<h1>petstore: how fast</h1><p class="lead">${escapeHtml(texts.sentence(results))}</p>`,
    section('The service', htmlTable(main) && `${htmlTable(main)}${list([...texts.legendOf(main), HATCHED])}`),
    charts('Requests a second', rows, ({ perSecond }) => perSecond, texts.rateText),
    charts(
      'Server CPU time a request, µs',
      rows,
      ({ cpuMicros }) => cpuMicros,
      ({ cpuMicros }) => spreadText(cpuMicros, 1),
    ),
    charts('Latency at p99, at 1,000 requests a second, ms', rows, latencyBar, latencyText),
    section('Against others', htmlTable(texts.peerTable(results))),
    section('More figures', htmlTable(texts.figureTable(results))),
    section('Notes', list(results.notes)),
    section('The machine', list(texts.machineLines(results))),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>petstore: benchmarks</title><style>${STYLE}</style></head><body><main>
${parts.filter(Boolean).join('\n')}
</main></body></html>
`;
}

/** An upper bound is hatched, too. */
function latencyBar({ latency }: Row): Bar {
  return latency && { median: latency.p99, low: 0, high: latency.p99, tooNoisy: latency.isAtMost };
}

const latencyText = (row: Row) => `${texts.latencyText(row, 'p99')} (p50 ${texts.latencyText(row, 'p50')})`;

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}

function section(title: string, content: string): string {
  return content && `<section><h2>${escapeHtml(title)}</h2>${content}</section>`;
}

function list(items: string[]): string {
  return items.length === 0 ? '' : `<ul>${items.map((item) => `<li>${escapeHtml(item)}</li>`).join('')}</ul>`;
}

/** A chart for each path, with a bar for each subject that has the value; a bar alone would say nothing. */
function charts(title: string, all: Row[], barOf: (row: Row) => Bar, textOf: (row: Row) => string): string {
  const figures = [...new Set(all.map(({ path }) => path))].map((path) => {
    const ofPath = all.filter((row) => row.path === path && barOf(row));
    if (ofPath.length < 2) return '';
    const longest = Math.max(...ofPath.map((row) => endsOf(barOf(row)!)[1]));
    const bars = ofPath.map((row) => htmlBar(row.subject, textOf(row), barOf(row)!, longest));
    return `<figure><figcaption>${escapeHtml(path)}</figcaption>${bars.join('')}</figure>`;
  });
  return section(title, figures.some(Boolean) ? `<div class="charts">${figures.join('')}</div>` : '');
}

const endsOf = ({ median, low, high, tooNoisy }: Spread) => (tooNoisy ? [low, high] : [0, median]);

/** Its name and its value stand above it, so they have room on every screen. */
function htmlBar(name: string, text: string, bar: Spread, longest: number): string {
  const colour = name === SERVICE ? 'own' : name === PEERS.bare.name ? 'bare' : 'other';
  const label = `<span>${escapeHtml(name)}</span><span class="number">${escapeHtml(text)}</span>`;
  const [from, to] = endsOf(bar).map((value) => (100 * value) / longest);
  const style = `margin-left:${from.toFixed(2)}%;width:${(to - from).toFixed(2)}%`;
  const drawn = `<span class="${bar.tooNoisy ? 'range' : 'value'} ${colour}" style="${style}"></span>`;
  return `<div class="bar">${label}<span class="track">${drawn}</span></div>`;
}

/** On a phone each row is a block, and each cell has its heading before it. */
function htmlTable({ headings, rows }: texts.Table): string {
  if (rows.length === 0) return '';
  const names = headings.map((heading) => escapeHtml(heading.replace('>', '')));
  const side = (at: number) => (headings[at].startsWith('>') ? ' class="right"' : '');
  const head = names.map((name, at) => `<th${side(at)}>${name}</th>`).join('');
  const cell = (text: string, at: number) => `<td${side(at)} data-name="${names[at]}">${escapeHtml(text)}</td>`;
  const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`).join('\n');
  return `<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`;
}

const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #566170; --rule: #dde2e9; --track: #f0f2f5;
  --own: #1668c7; --bare: #8a94a3; --other: #c98a4b; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161c; --ink: #e6eaf0; --soft: #a3aebc; --rule: #2a323d;
  --track: #1c222b; --own: #5aa7ff; --bare: #77818f; --other: #b9793b; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 24px 64px; overflow-wrap: break-word; }
h1 { font-size: 26px; margin: 0 0 12px; } h2 { font-size: 19px; margin: 40px 0 10px; }
p { margin: 10px 0; max-width: 80ch; font-size: 17px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; } .right { text-align: right; white-space: nowrap; }
ul { padding-left: 20px; color: var(--soft); max-width: 100ch; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(440px, 100%), 1fr)); gap: 28px 40px; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: 6px; }
.bar { display: grid; grid-template-columns: 1fr auto; gap: 2px 12px; margin-bottom: 8px; font-size: 14px; }
.number { font-variant-numeric: tabular-nums; text-align: right; }
.track { grid-column: 1 / 3; height: 12px; background: var(--track); } .track span { display: block; height: 100%; }
.own { --colour: var(--own); } .bare { --colour: var(--bare); } .other { --colour: var(--other); }
.value { background: var(--colour); }
.range { background: repeating-linear-gradient(135deg, var(--colour) 0 2px, transparent 2px 6px);
  box-sizing: border-box; border: solid var(--colour); border-width: 0 2px; }
@media (max-width: 700px) {
  main { padding: 20px 16px 48px; } thead { display: none; }
  tr { display: block; padding: 8px 0; border-bottom: 1px solid var(--rule); }
  td, td.right { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0; border: 0; text-align: right; }
  td::before { content: attr(data-name); color: var(--soft); text-align: left; flex: none; }
  td:first-child { display: block; font-weight: 600; text-align: left; }
  td:first-child::before { content: none; }
  td:empty { display: none; }
}
`;
