/** A rule judges requests of a key; its findings are counted. A check of the grade rests on one rule or more. */
import type { RequestRecord, Requests } from './record.ts';

const MAX_REQUEST_IDS = 8;

/** What a rule says of one request. */
export interface Finding {
  request: RequestRecord;
  /** `hidden`: a proxy makes it impossible to tell. */
  is: 'good' | 'bad' | 'hidden';
  /** The request that shows it, if it is another one. */
  shownBy?: RequestRecord;
}

/** A finding as a record holds it: a reference to another record would keep that one in memory. */
export type StoredFinding = Pick<Finding, 'is'> & { requestId: string };

export interface Rule {
  /** A pure function. `now`: a moment of the key's clock, for what shows only as time passes. */
  judge(requests: Requests, now: number): Finding[];
  /** With `bad`, a sentence: "3 of 12 POSTs after a 422 got another". */
  subject: string;
  bad: string;
  /** The share that may be bad; none, if absent. */
  share?: number;
  /** A later request can turn a bad finding into a good one; otherwise it stays bad. */
  isRevisable?: boolean;
  /** It never fails. */
  onlyWarns?: boolean;
}

/**
 * Applies each rule to the requests, and stores what it finds with them. A bad finding stays even if it is not found
 * again, since the requests that showed it may be gone.
 */
export function judge(requests: Requests, now: number, rules: readonly Rule[]): void {
  for (const rule of rules) {
    for (const { request, is, shownBy = request } of rule.judge(requests, now)) {
      request.findings ??= new Map();
      const isFinal = !rule.isRevisable && request.findings.get(rule)?.is === 'bad';
      if (!isFinal) request.findings.set(rule, { is, requestId: shownBy.requestId });
    }
  }
}

export interface Count {
  good: number;
  bad: number;
  hidden: number;
  /** The newest requests that showed a bad one. */
  requestIds: readonly string[];
}

const NONE: Count = { good: 0, bad: 0, hidden: 0, requestIds: [] };

/** The number of findings of each rule. */
export class Counts {
  readonly #counts = new Map<Rule, Count>();

  copy(): Counts {
    const copy = new Counts();
    for (const [rule, count] of this.#counts) copy.#counts.set(rule, count);
    return copy;
  }

  of(rule: Rule): Count {
    return this.#counts.get(rule) ?? NONE;
  }

  add({ findings = new Map() }: RequestRecord): void {
    for (const [rule, { is, requestId }] of findings) {
      const count = this.of(rule);
      const requestIds = is === 'bad' ? [...count.requestIds, requestId].slice(-MAX_REQUEST_IDS) : count.requestIds;
      this.#counts.set(rule, { ...count, [is]: count[is] + 1, requestIds });
    }
  }
}
