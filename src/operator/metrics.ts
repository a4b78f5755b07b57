/**
 * The counts for the metrics. `metrics-text.ts` writes them in Prometheus' text format, and `metrics-listener.ts`
 * serves them.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { App } from '../app.ts';
import type { Answered } from '../exchange.ts';
import type { Gate } from '../gate.ts';
import type { Refused } from '../http/connections.ts';
import { add, type Histogram, newHistogram } from './histogram.ts';
import type { Logger } from './logging.ts';
import type { ServeSettings } from './options.ts';

const EVENT_LOOP_RESOLUTION_MS = 10;

/** By endpoint: there are few, and a client cannot add one. */
type Routes = Map<string, { latency: Histogram; statuses: Map<number, number> }>;

export interface Figures {
  routes: Routes;
  /** Batches that became durable. */
  batches: Histogram;
  /** Worst delay of the event loop since the scrape before, in seconds. */
  loopDelay: number;
  /** Connections that were refused or ended, by the bound that was reached. */
  refused: Refused;
  /** Requests that were counted in an allowance of many addresses, by the allowance. */
  together: Gate['countedTogether'];
  /** Open connections. */
  open: number;
}

export class Metrics {
  readonly #routes: Routes = new Map();
  readonly #batches = newHistogram();
  readonly #loop = monitorEventLoopDelay({ resolution: EVENT_LOOP_RESOLUTION_MS });

  constructor() {
    this.#loop.enable();
  }

  /** On the way of every reply: must cost well under a microsecond. */
  replied(route: string, status: number, ms: number): void {
    const { latency, statuses } = routeIn(this.#routes, route);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    add(latency, ms);
  }

  /** Called by the engine for each batch that became durable. */
  readonly batch = (ms: number): void => add(this.#batches, ms);

  /** Connections and shared allowances are counted by the service itself: they are read from there. */
  figures({ connections, gate }: Pick<App, 'connections' | 'gate'>): Figures {
    // Node counts the time between two of its looks: the delay is what is beyond the wait from one to the next.
    const loopDelay = Math.max(0, this.#loop.max / 1e6 - EVENT_LOOP_RESOLUTION_MS) / 1_000;
    this.#loop.reset();
    const { refused, open } = connections;
    const own = { routes: this.#routes, batches: this.#batches, loopDelay };
    return { ...own, refused, together: gate.countedTogether, open: open.size };
  }
}

function routeIn(routes: Routes, name: string) {
  let route = routes.get(name);
  if (route === undefined) routes.set(name, (route = { latency: newHistogram(), statuses: new Map() }));
  return route;
}

/** Returns what is to be called for each answered request; undefined if neither metrics nor the access log are on. */
export function observer({ accessLog }: ServeSettings, metrics: Metrics | undefined, log: Logger) {
  if (metrics === undefined && !accessLog) return undefined;
  return ({ route, method, target, status, ms, requestId, keyId: key, address }: Answered) => {
    metrics?.replied(route, status, ms);
    const rounded = Math.round(ms * 1_000) / 1_000;
    if (accessLog) log.access({ requestId, method, target, status, ms: rounded, key, address: address() });
  };
}
