/** From what was counted to a grade that one can argue about. */
import { CHECKS, type Check } from './checks.ts';
import type { Recorded } from './recorded.ts';

const MAX_REQUEST_IDS = 8;
const LEAST_SEEN_PERCENT = 60;
const GRADES = ['A', 'B', 'C', 'D', 'F'] as const;
const LEAST_SCORE = [90, 80, 65, 50, 0];

type Verdict = 'pass' | 'warn' | 'fail' | 'unseen';

type CheckResult = {
  id: string;
  weight: number;
  verdict: Verdict;
  /** How often it went wrong, and the newest requests with which it did. */
  count: number;
  requestIds: string[];
  why: string;
};

export interface Grade {
  grade: (typeof GRADES)[number] | null;
  /** Percent of the weight that was seen. */
  score: number;
  /** Of all weight, which is 100. */
  seen: number;
  checks: CheckResult[];
}

/** What one check has counted of one key. */
interface Tally {
  good: number;
  bad: number;
  requestIds: string[];
}

export const newTallies = (): Tally[] => CHECKS.map(() => ({ good: 0, bad: 0, requestIds: [] }));

/** Counts what the newest request says, in view of those before it. */
export function count(tallies: Tally[], newest: Recorded, before: readonly Recorded[]): void {
  for (const [at, { judge }] of CHECKS.entries()) {
    const judgement = judge(newest, before);
    if (judgement === undefined) continue;
    const tally = tallies[at];
    tally[judgement]++;
    if (judgement === 'bad') tally.requestIds = [...tally.requestIds, newest.requestId].slice(-MAX_REQUEST_IDS);
  }
}

export function gradeOf(tallies: readonly Tally[]): Grade {
  const checks = CHECKS.map((check, at) => resultOf(check, tallies[at]));
  const seen = weightOf(checks, { pass: 1, warn: 1, fail: 1, unseen: 0 });
  const earned = weightOf(checks, { pass: 1, warn: 0.5, fail: 0, unseen: 0 });
  const score = seen === 0 ? 0 : (100 * earned) / seen;
  const worst = CHECKS.filter((_, at) => checks[at].verdict === 'fail').map(({ cap }) => GRADES.indexOf(cap ?? 'A'));
  const place = Math.max(
    LEAST_SCORE.findIndex((least) => score >= least),
    ...worst,
  );
  const grade = seen < LEAST_SEEN_PERCENT ? null : GRADES[place];
  return { grade, score: Math.floor(score), seen, checks };
}

function weightOf(checks: readonly CheckResult[], part: Record<Verdict, number>): number {
  return checks.reduce((sum, { weight, verdict }) => sum + weight * part[verdict], 0);
}

function resultOf(check: Check, { good, bad, requestIds }: Tally): CheckResult {
  const { id, weight, share = 0, warns } = check;
  const all = good + bad;
  const isBad = bad > share * all;
  const verdict = all === 0 ? 'unseen' : !isBad ? 'pass' : warns ? 'warn' : 'fail';
  const allowed = share > 0 ? ` (${100 * share} % may)` : '';
  const why = all === 0 ? `not seen: no ${check.judged}` : `${bad} of ${all} ${check.judged} ${check.bad}${allowed}`;
  return { id, weight, verdict, count: bad, requestIds: [...requestIds], why };
}
