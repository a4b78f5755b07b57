/** From the counts of the rules to verdicts, score and grade. */
import { CHECKS, type Check } from './checks.ts';
import type { Count, Counts, Rule } from './rule.ts';

const MIN_SEEN_PERCENT = 60;
const GRADES = ['A', 'B', 'C', 'D', 'F'] as const;
const MIN_SCORES = [90, 80, 65, 50, 0];
const HIDDEN = 'a proxy stands between (Via, Forwarded or X-Forwarded-For), and the connections are its own';

type Verdict = 'pass' | 'warn' | 'fail' | 'unseen';

type CheckResult = {
  id: string;
  weight: number;
  verdict: Verdict;
  /** The number of bad findings, and the newest requests that showed one. */
  count: number;
  requestIds: readonly string[];
  why: string;
};

/** The reply of `GET /lab/grade`. */
export interface Grade {
  grade: (typeof GRADES)[number] | null;
  /** What was earned, in percent of the weight that was seen. */
  score: number;
  /** The weight of the checks that were seen, in percent. */
  seen: number;
  /** What the client would have to do for more to be seen; empty if all was seen. */
  next: string;
  checks: readonly CheckResult[];
}

export function gradeOf(counts: Counts): Grade {
  const checks = CHECKS.map((check) => resultOf(check, counts));
  const weight = weightOf(checks, { pass: 1, warn: 1, fail: 1, unseen: 1 });
  const seenWeight = weightOf(checks, { pass: 1, warn: 1, fail: 1, unseen: 0 });
  const earned = weightOf(checks, { pass: 1, warn: 0.5, fail: 0, unseen: 0 });
  const seen = Math.floor((100 * seenWeight) / weight);
  const score = seenWeight === 0 ? 0 : (100 * earned) / seenWeight;

  const failed = CHECKS.filter((_, i) => checks[i].verdict === 'fail').flatMap(({ cap }) => cap ?? []);
  const unseen = CHECKS.filter((_, i) => checks[i].verdict === 'unseen').flatMap(({ capUnseen }) => capUnseen ?? []);
  const byScore = MIN_SCORES.findIndex((min) => score >= min);
  const lowest = Math.max(byScore, ...[...failed, ...unseen].map((cap) => GRADES.indexOf(cap)));
  const grade = seen < MIN_SEEN_PERCENT && failed.length === 0 ? null : GRADES[lowest];
  return { grade, score: Math.floor(score), seen, next: nextOf(checks), checks };
}

function weightOf(checks: readonly CheckResult[], part: Record<Verdict, number>): number {
  return checks.reduce((sum, { weight, verdict }) => sum + weight * part[verdict], 0);
}

/** The heaviest first. */
function nextOf(checks: readonly CheckResult[]): string {
  const missing = CHECKS.filter(({ hint }, i) => hint !== undefined && checks[i].verdict === 'unseen');
  const heaviest = missing.sort((a, b) => b.weight - a.weight);
  return heaviest.map(({ id, weight, hint }) => `${id} (${weight}): ${hint}`).join('; ');
}

function resultOf({ id, weight, rules }: Check, counts: Counts): CheckResult {
  const results = rules.map((rule) => ({ rule, ...counts.of(rule), verdict: verdictOf(rule, counts.of(rule)) }));
  const verdict = (['fail', 'warn', 'pass'] as const).find((one) => results.some((result) => result.verdict === one));
  if (verdict === undefined) {
    const why = results.some(({ hidden }) => hidden > 0) ? HIDDEN : `no ${rules[0].subject}`;
    return { id, weight, verdict: 'unseen', count: 0, requestIds: [], why: `not seen: ${why}` };
  }
  const seen = results.filter((result) => result.verdict !== 'unseen');
  const { bad: count, requestIds } = seen.find((result) => result.verdict === verdict)!;
  const sentences = seen.map(({ rule, good, bad }) => {
    const allowed = rule.share === undefined ? '' : ` (${100 * rule.share} % may)`;
    return `${bad} of ${good + bad} ${rule.subject} ${rule.bad}${allowed}`;
  });
  return { id, weight, verdict, count, requestIds, why: sentences.join('; ') };
}

function verdictOf({ share = 0, onlyWarns }: Rule, { good, bad }: Count): Verdict {
  if (good + bad === 0) return 'unseen';
  if (bad <= share * (good + bad)) return 'pass';
  return onlyWarns ? 'warn' : 'fail';
}
