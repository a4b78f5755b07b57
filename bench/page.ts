/** The results as one page that needs nothing else: no script, no font, no picture from elsewhere. */
import { number, type Spread, spreadText } from './numbers.ts';
import { PEERS } from './peers.ts';
import type { Results, Row } from './results.ts';
import { SERVICE } from './service.ts';
import * as texts from './text.ts';

export function asPage(results: Results): string {
  const rows = results.rows.filter(({ part }) => part !== 'scale');
  const main = texts.mainTable(results);
  const others = texts.peerTable(results);
  const figures = texts.figureTable(results);
  const parts = [
    `<h1>petstore: how fast</h1><p>${escapeHtml(texts.sentence(results))}</p>`,
    section('The service', main.rows.length > 0 ? `${htmlTable(main)}${list(texts.legendOf(main))}` : ''),
    section('Where the time of a request goes', htmlShares(texts.sharesOf(results))),
    charts('Requests a second', rows, ({ perSecond }) => perSecond, texts.rateText),
    charts(
      'Server CPU time a request, µs',
      rows,
      ({ cpuMicros }) => cpuMicros,
      (row) => spreadText(row.cpuMicros, 1),
    ),
    section(others.title, htmlTable(others)),
    section(figures.title, htmlTable(figures)),
    section('Notes', list(results.notes)),
    section('The machine', list(texts.machineLines(results))),
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

function section(title: string, content: string): string {
  return content && `<section><h2>${escapeHtml(title)}</h2>${content}</section>`;
}

function list(items: string[]): string {
  return items.length === 0 ? '' : `<ul>${items.map((item) => `<li>${escapeHtml(item)}</li>`).join('')}</ul>`;
}

/** One bar, which its parts make up. */
function htmlShares(shares: texts.Share[] = []): string {
  if (shares.length === 0) return '';
  const parts = shares.map(({ share }, at) => `<span class="part${at}" style="width:${percent(share)}"></span>`);
  const names = shares.map(({ name, micros }, at) => {
    return `<li><span class="key part${at}"></span>${name}: ${number(micros, 1)} µs</li>`;
  });
  const words = escapeHtml(texts.sharesInWords(shares));
  return `<p>${words}</p><div class="shares">${parts.join('')}</div><ul class="keys">${names.join('')}</ul>`;
}

const percent = (share: number) => `${(100 * share).toFixed(2)}%`;

/** A chart for each path, with one bar for each subject that has the value; a bar alone would say nothing. */
function charts(
  title: string,
  all: Row[],
  spreadOf: (row: Row) => Spread | undefined,
  textOf: (row: Row) => string,
): string {
  const figures = [...new Set(all.map(({ path }) => path))].map((path) => {
    const rows = all.filter((row) => row.path === path && spreadOf(row));
    if (rows.length < 2) return '';
    const longest = Math.max(...rows.map((row) => endsOf(spreadOf(row)!)[1]));
    const bars = rows.map((row) => htmlBar(row.subject, textOf(row), spreadOf(row)!, longest));
    return `<figure><figcaption>${escapeHtml(path)}</figcaption>${bars.join('')}</figure>`;
  });
  const hint = all.some((row) => spreadOf(row)?.tooNoisy) ? '<p>Hatched: the interval of a noisy figure.</p>' : '';
  return section(title, figures.some(Boolean) ? `${hint}<div class="charts">${figures.join('')}</div>` : '');
}

/** From zero to the median, or the interval where it is too noisy. */
const endsOf = ({ median, low, high, tooNoisy }: Spread) => (tooNoisy ? [low, high] : [0, median]);

/** Its name and its value stand above it, so they have room on every screen. */
function htmlBar(name: string, text: string, value: Spread, longest: number): string {
  const colour = name === SERVICE ? 'own' : name === PEERS.bare.name ? 'bare' : 'other';
  const [from, to] = endsOf(value);
  const style = `margin-left:${percent(from / longest)};width:${percent((to - from) / longest)}`;
  const bar = `<span class="${value.tooNoisy ? 'range' : 'value'} ${colour}" style="${style}"></span>`;
  const label = `<span>${escapeHtml(name)}</span><span class="number">${escapeHtml(text)}</span>`;
  return `<div class="bar">${label}<span class="track">${bar}</span></div>`;
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
p { margin: 10px 0; max-width: 80ch; } h1 + p { font-size: 17px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; } .right { text-align: right; } td.right { white-space: nowrap; }
ul { padding-left: 20px; color: var(--soft); max-width: 100ch; }
.shares { display: flex; height: 28px; }
.part0 { background: var(--bare); } .part1 { background: var(--other); } .part2 { background: var(--own); }
.keys { display: flex; flex-wrap: wrap; gap: 4px 24px; padding: 0; list-style: none; }
.key { display: inline-block; width: 12px; height: 12px; margin-right: 8px; }
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
  td, td.right { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0; border: 0;
    text-align: right; white-space: normal; }
  td::before { content: attr(data-name); color: var(--soft); text-align: left; flex: none; }
  td:first-child { display: block; font-weight: 600; text-align: left; }
  td:first-child::before { content: none; }
  td:empty { display: none; }
}
`;
