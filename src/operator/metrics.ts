/** What is counted for Prometheus, at the price of a few additions a request. */

/** One value of a family of figures. */
export interface Sample {
  suffix?: string;
  labels?: Record<string, string>;
  value: number;
}

const FSYNC_BUCKETS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000];
const LATENCY_BUCKETS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
/** Operations are few; this only bounds the damage of a caller that takes texts of clients for their names. */
const ROUTES_MAX = 64;
const FIRST_STATUS = 100;
const STATUSES = 500;

class Histogram {
  readonly #boundsMs: number[];
  /** One more than there are bounds: the last takes what is slower than all of them. */
  readonly #counts: Float64Array;
  #sumMs = 0;

  constructor(boundsMs: number[]) {
    this.#boundsMs = boundsMs;
    this.#counts = new Float64Array(boundsMs.length + 1);
  }

  add(ms: number): void {
    let bucket = 0;
    while (ms > this.#boundsMs[bucket]) bucket++;
    this.#counts[bucket]++;
    this.#sumMs += ms;
  }

  samples(labels: Record<string, string>): Sample[] {
    let sum = 0;
    const buckets = Array.from(this.#counts, (count, at): Sample => {
      const le = at < this.#boundsMs.length ? String(this.#boundsMs[at] / 1_000) : '+Inf';
      return { suffix: '_bucket', labels: { ...labels, le }, value: (sum += count) };
    });
    return [
      ...buckets,
      { suffix: '_sum', labels, value: this.#sumMs / 1_000 },
      { suffix: '_count', labels, value: sum },
    ];
  }
}

class RouteFigures {
  /** By status, found without a look-up. */
  readonly statuses = new Float64Array(STATUSES);
  readonly latency = new Histogram(LATENCY_BUCKETS_MS);
}

export class Metrics {
  readonly #routes = new Map<string, RouteFigures>();

  /** On the way of every reply: must cost well under a microsecond. */
  replied(route: string, status: number, ms: number): void {
    const figures = this.#routes.get(route) ?? this.#add(route);
    figures.statuses[status - FIRST_STATUS]++;
    figures.latency.add(ms);
  }

  #add(route: string): RouteFigures {
    const name = this.#routes.size < ROUTES_MAX ? route : 'other';
    const figures = this.#routes.get(name) ?? new RouteFigures();
    this.#routes.set(name, figures);
    return figures;
  }

  refusals(): number {
    let sum = 0;
    for (const { statuses } of this.#routes.values()) sum += statuses[429 - FIRST_STATUS];
    return sum;
  }

  requests(): Sample[] {
    const samples: Sample[] = [];
    for (const [route, { statuses }] of this.#routes) {
      statuses.forEach((value, at) => {
        if (value > 0) samples.push({ labels: { route, status: String(at + FIRST_STATUS) }, value });
      });
    }
    return samples;
  }

  latency(): Sample[] {
    return [...this.#routes].flatMap(([route, { latency }]) => latency.samples({ route }));
  }
}

/** What the store tells of each batch that became durable. */
export class StoreFigures {
  records = 0;
  bytes = 0;
  readonly sync = new Histogram(FSYNC_BUCKETS_MS);

  batch(records: number, bytes: number, ms: number): void {
    this.records += records;
    this.bytes += bytes;
    this.sync.add(ms);
  }
}
