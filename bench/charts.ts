/** The charts of the report, as inline SVG. Colours come from the page's style sheet, so that they follow light and dark. */

const WIDTH = 640;
const LABELS_WIDTH = 135;
const VALUES_WIDTH = 175;
const BAR_HEIGHT = 26;
const PLOT = { left: 64, right: 130, top: 30, bottom: 44, height: 270 };
/** Labels at the ends of lines are kept this far apart. */
const LABEL_HEIGHT = 18;

export interface Bar {
  label: string;
  value: number;
  min: number;
  max: number;
  /** What is written at its end. */
  text: string;
  ours: boolean;
}

/** Horizontal bars from zero; the thin line on each is the spread over the rounds. */
export function bars(title: string, items: Bar[]): string {
  const height = items.length * (BAR_HEIGHT + 8) + 8;
  const room = WIDTH - LABELS_WIDTH - VALUES_WIDTH;
  const largest = Math.max(...items.map((item) => item.max));
  const x = (value: number) => LABELS_WIDTH + (value / largest) * room;
  const parts = items.map((item, i) => {
    const top = 8 + i * (BAR_HEIGHT + 8);
    const middle = top + BAR_HEIGHT / 2;
    return [
      `<text class="label" x="${LABELS_WIDTH - 10}" y="${middle + 5}" text-anchor="end">${escapeHtml(item.label)}</text>`,
      rect(LABELS_WIDTH, top, Math.max(1, x(item.value) - LABELS_WIDTH), BAR_HEIGHT, item.ours ? 'bar ours' : 'bar'),
      line(x(item.min), middle, x(item.max), middle, 'spread'),
      `<text class="value" x="${x(item.max) + 10}" y="${middle + 5}">${escapeHtml(item.text)}</text>`,
    ].join('');
  });
  return svg(title, height, parts.join(''));
}

export interface Series {
  label: string;
  points: [x: number, y: number][];
  /** Which of the style sheet's colours; the same subject has the same one in all charts. */
  colour: number;
}

export interface Axes {
  xTicks: [at: number, text: string][];
  yText: (value: number) => string;
  xName: string;
  yName: string;
  /** Logarithmic upwards; sideways the points say themselves where they are. */
  logarithmic: boolean;
}

export function lines(title: string, axes: Axes, series: Series[]): string {
  const values = series.flatMap(({ points }) => points.map(([, y]) => y)).filter((y) => Number.isFinite(y) && y > 0);
  if (values.length === 0) return '';
  const ticks = axes.logarithmic ? decades(Math.min(...values), Math.max(...values)) : steps(Math.max(...values));
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  const share = (y: number) =>
    axes.logarithmic ? Math.log(Math.max(y, low) / low) / Math.log(high / low) : (y - low) / (high - low);
  const firstX = axes.xTicks[0][0];
  const lastX = axes.xTicks[axes.xTicks.length - 1][0];
  const right = WIDTH - PLOT.right;
  const x = (value: number) => PLOT.left + ((value - firstX) / (lastX - firstX)) * (right - PLOT.left);
  const y = (value: number) => PLOT.top + (1 - share(value)) * PLOT.height;
  const grid = ticks.map(
    (tick) => `${line(PLOT.left, y(tick), right, y(tick), 'grid')}
      <text class="tick" x="${PLOT.left - 8}" y="${y(tick) + 4}" text-anchor="end">${axes.yText(tick)}</text>`,
  );
  const foot = PLOT.top + PLOT.height;
  const marks = axes.xTicks.map(
    ([at, text]) => `<text class="tick" x="${x(at)}" y="${foot + 20}" text-anchor="middle">${text}</text>`,
  );
  const names = [
    `<text class="tick" x="${(PLOT.left + right) / 2}" y="${foot + 40}" text-anchor="middle">${axes.xName}</text>`,
    `<text class="tick" x="0" y="${PLOT.top - 14}">${axes.yName}</text>`,
  ];
  const ends = apart(series.map(({ points }) => y(points[points.length - 1][1])));
  const curves = series.map(({ label, points, colour: number }, i) => {
    const path = points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(' ');
    const colour = `s${number}`;
    const dots = points.map(([px, py]) => `<circle class="${colour}" cx="${x(px)}" cy="${y(py)}" r="3"/>`).join('');
    return `<polyline class="curve ${colour}" points="${path}"/>${dots}
      <text class="label ${colour}" x="${right + 10}" y="${ends[i] + 4}">${escapeHtml(label)}</text>`;
  });
  return svg(title, foot + PLOT.bottom, [...grid, ...marks, ...names, ...curves].join(''));
}

/** Places for labels near where they belong, none over another. */
function apart(wanted: number[]): number[] {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const placed = [...wanted];
  for (let i = 1; i < order.length; i++) {
    placed[order[i]] = Math.max(placed[order[i]], placed[order[i - 1]] + LABEL_HEIGHT);
  }
  return placed;
}

function decades(low: number, high: number): number[] {
  const first = Math.floor(Math.log10(low));
  const last = Math.max(first + 1, Math.ceil(Math.log10(high)));
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

function steps(high: number): number[] {
  const rough = high / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5].find((factor) => factor * power >= rough) ?? 10);
  return Array.from({ length: Math.ceil(high / step) + 1 }, (_, i) => i * step);
}

function rect(x: number, y: number, width: number, height: number, name: string): string {
  return `<rect class="${name}" x="${x}" y="${y}" width="${width.toFixed(1)}" height="${height}" rx="3"/>`;
}

function line(x1: number, y1: number, x2: number, y2: number, name: string): string {
  return `<line class="${name}" x1="${x1.toFixed(1)}" y1="${y1}" x2="${x2.toFixed(1)}" y2="${y2}"/>`;
}

function svg(title: string, height: number, content: string): string {
  const name = escapeHtml(title);
  return `<figure><figcaption>${name}</figcaption>
    <svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${name}">${content}</svg></figure>`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
