/** The counts of a key's client, and the grade that follows from them, with its evidence. */
import { CHECKS, type Check, type Rule } from './checks.ts';
import type { Judgement, RequestRecord } from './request-record.ts';

const MAX_REQUEST_IDS = 8;
const LEAST_SEEN_PERCENT = 60;
const GRADES = ['A', 'B', 'C', 'D', 'F'] as const;
const LEAST_SCORE = [90, 80, 65, 50, 0];
const HIDDEN = 'a proxy stands between (Via, Forwarded or X-Forwarded-For), and the connections are its own';

type Verdict = 'pass' | 'warn' | 'fail' | 'unseen';

type CheckResult = {
  id: string;
  weight: number;
  verdict: Verdict;
  /** The number of bad judgements, and the newest requests with one. */
  count: number;
  requestIds: string[];
  why: string;
};

export interface Grade {
  grade: (typeof GRADES)[number] | null;
  /** Percent of the weight that was seen. */
  score: number;
  /** The weight of the checks that were seen, of 100. */
  seen: number;
  /** The behaviour by which more would be seen; empty if all was. */
  next: string;
  checks: CheckResult[];
}

type Requests = readonly RequestRecord[];

/** The counts of one rule for one key. */
interface Tally {
  good: number;
  bad: number;
  hidden: number;
  requestIds: string[];
}

/** The counts of all rules for one key. A rule has one judgement on a request, which a later one may replace. */
export class Tallies {
  readonly #tallies = new Map<Rule, Tally>();

  of(rule: Rule): Tally {
    let tally = this.#tallies.get(rule);
    if (tally === undefined) this.#tallies.set(rule, (tally = { good: 0, bad: 0, hidden: 0, requestIds: [] }));
    return tally;
  }

  /** Counts the judgements on a request that has ended, in view of those that came before it, and after. */
  count(newest: RequestRecord, before: Requests, after: Requests = [], rules: readonly Rule[] = RULES): void {
    for (const rule of rules) {
      if (rule.judge === undefined) continue;
      const place = PLACES.get(rule)!;
      const judged = rule.judge(newest, before, { after, judgementOf: (one) => one.judged?.[place] });
      for (const one of judged) this.#add(rule, one);
    }
  }

  /** Counts faults that show as time passes. Returns the moment until which an open one may still turn out well. */
  settle(history: Requests, now: number): number {
    let openUntil = now;
    for (const rule of RULES) {
      const settled = rule.settle?.(history, now);
      for (const one of settled?.judged ?? []) this.#add(rule, one);
      openUntil = Math.max(openUntil, settled?.openUntil ?? now);
    }
    return openUntil;
  }

  #add(rule: Rule, { of, is, by, instead }: Judgement): void {
    of.judged ??= new Array(RULES.length);
    const place = PLACES.get(rule)!;
    const was = of.judged[place];
    if (was?.is === is || (was?.is === 'bad' && !rule.revises)) return;
    const tally = this.of(rule);
    if (was !== undefined) tally[was.is]--;
    of.judged[place] = { is, by: by.requestId, instead: instead ?? was?.instead };
    tally[is]++;
    if (was?.is === 'bad') tally.requestIds = tally.requestIds.filter((id) => id !== was.by);
    else if (is === 'bad') tally.requestIds = [...tally.requestIds, by.requestId].slice(-MAX_REQUEST_IDS);
  }
}

const RULES = CHECKS.flatMap(({ rules }) => rules);
const PLACES: ReadonlyMap<Rule, number> = new Map(RULES.map((rule, place) => [rule, place]));

export function gradeOf(tallies: Tallies): Grade {
  const checks = CHECKS.map((check) => resultOf(check, tallies));
  const seen = weightOf(checks, { pass: 1, warn: 1, fail: 1, unseen: 0 });
  const earned = weightOf(checks, { pass: 1, warn: 0.5, fail: 0, unseen: 0 });
  const score = seen === 0 ? 0 : (100 * earned) / seen;
  const caps = CHECKS.map(({ cap, capUnseen }, at) => {
    const { verdict } = checks[at];
    return verdict === 'fail' ? cap : verdict === 'unseen' ? capUnseen : undefined;
  });
  const place = Math.max(
    LEAST_SCORE.findIndex((least) => score >= least),
    ...caps.map((cap) => GRADES.indexOf(cap ?? 'A')),
  );
  const isCapped = CHECKS.some(({ cap }, at) => cap !== undefined && checks[at].verdict === 'fail');
  const grade = seen < LEAST_SEEN_PERCENT && !isCapped ? null : GRADES[place];
  return { grade, score: Math.floor(score), seen, next: nextOf(checks), checks };
}

function weightOf(checks: readonly CheckResult[], part: Record<Verdict, number>): number {
  return checks.reduce((sum, { weight, verdict }) => sum + weight * part[verdict], 0);
}

/** The heaviest first. */
function nextOf(checks: readonly CheckResult[]): string {
  const missing = CHECKS.filter(({ toSee }, at) => toSee !== undefined && checks[at].verdict === 'unseen');
  return missing
    .sort((a, b) => b.weight - a.weight)
    .map(({ id, weight, toSee }) => `${id} (${weight}): ${toSee}`)
    .join('; ');
}

function resultOf({ id, weight, rules }: Check, tallies: Tallies): CheckResult {
  const results = rules.map((rule) => ({ rule, ...tallies.of(rule), verdict: verdictOf(rule, tallies.of(rule)) }));
  const verdict = (['fail', 'warn', 'pass'] as const).find((one) => results.some((result) => result.verdict === one));
  if (verdict === undefined) {
    const why = results.some(({ hidden }) => hidden > 0) ? HIDDEN : `no ${rules[0].judged}`;
    return { id, weight, verdict: 'unseen', count: 0, requestIds: [], why: `not seen: ${why}` };
  }
  const seen = results.filter((result) => result.verdict !== 'unseen');
  const told = seen.find((result) => result.verdict === verdict)!;
  const why = seen.map(({ rule, good, bad }) => {
    const allowed = rule.share === undefined ? '' : ` (${100 * rule.share} % may)`;
    return `${bad} of ${good + bad} ${rule.judged} ${rule.bad}${allowed}`;
  });
  return { id, weight, verdict, count: told.bad, requestIds: [...told.requestIds], why: why.join('; ') };
}

function verdictOf({ share = 0, warns }: Rule, { good, bad }: Tally): Verdict {
  if (good + bad === 0) return 'unseen';
  if (bad <= share * (good + bad)) return 'pass';
  return warns ? 'warn' : 'fail';
}
