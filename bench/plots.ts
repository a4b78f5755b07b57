/** The plots of the page, drawn by Observable Plot as inline SVG. Colours are the page's, and follow light and dark. */
import { AIMS } from './aims.ts';
import type { Growth, Results, Row } from './bench.ts';
import type { Latency } from './measure.ts';
import { PEERS } from './peers.ts';
import { SERVICE } from './service.ts';
import { number } from './table.ts';

export interface Plots {
  throughput: string[];
  latency: string[];
  growth: string[];
}

/** Sideways, each step has ten times fewer requests beyond it. */
const SHARES: [key: keyof Latency, text: string][] = [
  ['p50', '50 %'],
  ['p90', '90 %'],
  ['p99', '99 %'],
  ['p999', '99.9 %'],
  ['max', 'longest'],
];
/** A subject keeps its colour from plot to plot. */
const SUBJECTS: string[] = [SERVICE, ...Object.values(PEERS).map(({ name }) => name)];
const colourOf = (subject: string) => `var(--s${Math.max(0, SUBJECTS.indexOf(subject))})`;

type Draw = (title: string, options: object) => string;

/** Undefined where the library is not installed. */
export async function drawPlots(results: Results): Promise<Plots | undefined> {
  // Packages of bench's own, which need not be there: their types are not known here.
  const [plotting, dom]: string[] = ['@observablehq/plot', 'linkedom'];
  const [Plot, { parseHTML }] = await Promise.all([import(plotting), import(dom)]).catch(() => [undefined, {}]);
  if (Plot === undefined) return undefined;
  const { document } = parseHTML('<!doctype html><html></html>');
  const draw: Draw = (title, options) => {
    const figure = document.createElement('figure');
    const caption = document.createElement('figcaption');
    caption.textContent = title;
    figure.append(caption, Plot.plot({ document, width: 640, ...options }));
    return figure.outerHTML;
  };
  return {
    throughput: groups(results.rows, ({ perSecond }) => perSecond !== undefined).map((rows) => bars(Plot, draw, rows)),
    latency: groups(results.rows, ({ perSecond }) => perSecond === undefined).map((rows) => curves(Plot, draw, rows)),
    growth: results.growth.length < 2 ? [] : growth(Plot, draw, results.growth),
  };
}

/** Rows of one suite under one load; those of growth are plotted by themselves. */
function groups(rows: Row[], wanted: (row: Row) => boolean): Row[][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const name = `${row.suite} ${row.how}`;
    if (wanted(row) && row.suite !== 'scale') groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups.values()];
}

function titleOf({ suite, how }: Row): string {
  return `${AIMS.find((aim) => aim.suite === suite)?.path ?? suite}: ${how}`;
}

// biome-ignore lint/suspicious/noExplicitAny: see drawPlots
type Library = any;

/** From zero; the thin line on each is the spread over the rounds. */
function bars(Plot: Library, draw: Draw, rows: Row[]): string {
  const data = rows.map(({ subject, perSecond, cpuMicros }) => {
    const text = `${number(perSecond?.median, 0)} · ${number(cpuMicros?.median, 0)} µs CPU`;
    return { subject, ...perSecond, text, fill: colourOf(subject) };
  });
  return draw(titleOf(rows[0]), {
    marginLeft: 130,
    marginRight: 170,
    height: 60 + 36 * data.length,
    x: { label: 'requests a second', grid: true, ticks: 5 },
    y: { label: null },
    marks: [
      Plot.barX(data, { x: 'median', y: 'subject', fill: 'fill', insetTop: 4, insetBottom: 4, sort: { y: '-x' } }),
      Plot.ruleY(data, { x1: 'min', x2: 'max', y: 'subject', stroke: 'currentColor' }),
      Plot.text(data, { x: 'max', y: 'subject', text: 'text', dx: 8, textAnchor: 'start' }),
    ],
  });
}

function curves(Plot: Library, draw: Draw, rows: Row[]): string {
  const data = rows.flatMap(({ subject, latency }) => {
    return SHARES.map(([key, share]) => ({ subject, share, ms: latency?.[key], stroke: colourOf(subject) }));
  });
  return draw(titleOf(rows[0]), {
    marginRight: 130,
    marginBottom: 45,
    height: 320,
    x: { domain: SHARES.map(([, share]) => share), label: 'share of requests answered within', labelOffset: 40 },
    y: { type: 'log', label: 'ms', grid: true, tickFormat: String },
    marks: lines(Plot, data, { x: 'share', y: 'ms', z: 'subject' }),
  });
}

function growth(Plot: Library, draw: Draw, points: Growth[]): string[] {
  const one = (title: string, series: Record<string, keyof Growth>) => {
    const data = Object.entries(series).flatMap(([subject, key], i) => {
      return points.map((point) => ({ subject, animals: point.animals, value: point[key], stroke: `var(--s${i})` }));
    });
    return draw(title, {
      marginLeft: 60,
      marginRight: 130,
      height: 300,
      x: { type: 'log', label: 'animals', ticks: points.length },
      y: { label: null, grid: true, zero: true },
      marks: lines(Plot, data, { x: 'animals', y: 'value', z: 'subject' }),
    });
  };
  return [
    one('Pages of 20, requests a second', { 'first page': 'firstPerSecond', 'rare status': 'rarePerSecond' }),
    one('Memory after load, MB', { resident: 'memoryMb' }),
    one('Start until it listens, seconds', { start: 'startSeconds' }),
  ];
}

function lines(Plot: Library, data: object[], channels: { x: string; y: string; z: string }): unknown[] {
  const ends = Plot.selectLast({ ...channels, text: 'subject', fill: 'stroke', dx: 10, textAnchor: 'start' });
  const stroke = { ...channels, stroke: 'stroke', strokeWidth: 2 };
  return [Plot.line(data, stroke), Plot.dot(data, { ...stroke, r: 2.5 }), Plot.text(data, ends)];
}
