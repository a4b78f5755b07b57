/** Which charts the report shows, from the results. */
import { type Axes, bars, lines } from './charts.ts';
import type { Latency } from './measure.ts';
import { PEERS } from './peers.ts';
import type { GrowthPoint, Results, Row } from './results.ts';
import { SERVICE } from './service.ts';
import { number } from './table.ts';

const TITLES = new Map([
  ['list', 'GET /v1/pets?limit=20'],
  ['limit', '429, over the limit'],
  ['get', 'GET /v1/pets/{id}'],
  ['create', 'POST /v1/pets (petstore, SQLite: on disk)'],
  ['mixed', 'Mixed: 7 list, 2 get, 1 create (petstore: on disk)'],
]);

/** Sideways, each step has ten times fewer requests beyond it. */
const PERCENTILES: [key: keyof Latency, nines: number, text: string][] = [
  ['p50', 0.3, '50 %'],
  ['p90', 1, '90 %'],
  ['p99', 2, '99 %'],
  ['p999', 3, '99.9 %'],
  ['max', 4, 'longest'],
];

/** A subject keeps its colour from chart to chart. */
const SUBJECTS: string[] = [SERVICE, ...Object.values(PEERS).map(({ name }) => name)];

export function throughputCharts({ rows }: Results): string {
  return [...TITLES]
    .map(([suite, title]) =>
      throughputChart(
        title,
        rows.filter((row) => row.suite === suite),
      ),
    )
    .join('');
}

function throughputChart(title: string, rows: Row[]): string {
  const items = rows.filter((row) => row.perSecond).sort((a, b) => b.perSecond!.median - a.perSecond!.median);
  if (items.length === 0) return '';
  const bar = ({ subject, perSecond, cpuMicros }: Row) => ({
    label: subject,
    value: perSecond!.median,
    min: perSecond!.min,
    max: perSecond!.max,
    text: `${number(perSecond!.median, 0)} · ${number(cpuMicros?.median, 0)} µs CPU`,
    ours: subject === SERVICE,
  });
  return bars(`${title}, ${items[0].how}`, items.map(bar));
}

export function latencyCharts({ rows }: Results): string {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const title = TITLES.get(row.suite);
    if (row.perSecond || !row.latency || !title) continue;
    const name = `${title}, ${row.how}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  const axes: Axes = {
    xTicks: PERCENTILES.map(([, nines, text]) => [nines, text]),
    yText: String,
    xName: 'share of requests answered within',
    yName: 'ms',
    logarithmic: true,
  };
  const curve = ({ subject, latency }: Row) => ({
    label: subject,
    points: PERCENTILES.map(([key, nines]): [number, number] => [nines, latency![key]]),
    colour: SUBJECTS.indexOf(subject),
  });
  return [...groups].map(([name, group]) => lines(name, axes, group.map(curve))).join('');
}

export function growthCharts({ growth }: Results): string {
  if (growth.length < 2) return '';
  const x = (animals: number) => Math.log10(animals);
  const axes = (yName: string): Axes => ({
    xTicks: growth.map(({ animals }) => [x(animals), animals.toLocaleString('en')]),
    yText: (value) => value.toLocaleString('en'),
    xName: 'animals',
    yName,
    logarithmic: false,
  });
  const series = (label: string, colour: number, of: (point: GrowthPoint) => number) => ({
    label,
    points: growth.map((point): [number, number] => [x(point.animals), of(point)]),
    colour,
  });
  return [
    lines('Pages of 20, requests a second', axes('per second'), [
      series('first page', 0, (point) => point.firstPerSecond),
      series('random pages', 2, (point) => point.randomPerSecond),
      series('rare status', 3, (point) => point.rarePerSecond),
    ]),
    lines('Memory after load', axes('MB'), [series('resident', 0, (point) => point.memoryMb)]),
    lines('Start until it listens', axes('seconds'), [series('start', 0, (point) => point.startSeconds)]),
  ].join('');
}
