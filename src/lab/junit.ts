/** A grade as JUnit XML, which every CI system shows: each check is a test, and the grade itself is one. */
import { markup } from '../quoting.ts';
import type { Grade } from './grade.ts';

/** `at`: Unix ms; `seconds`: how long the client was watched. */
export function junitOf(
  key: string,
  { grade, score, seen, next, checks }: Grade,
  { isGoodEnough, at, seconds }: { isGoodEnough: boolean; at: number; seconds: number },
): string {
  const cases = checks.map(({ id, verdict, why, requestIds }) => {
    const evidence = requestIds.length === 0 ? why : `${why}; requests: ${requestIds.join(', ')}`;
    if (verdict === 'warn') return caseOf(id, `<system-out>${markup(`warning: ${evidence}`)}</system-out>`);
    return caseOf(id, outcome(verdict, evidence));
  });
  const missing = grade === null ? `; for a grade: ${next}` : '';
  const told = `grade: ${grade ?? 'none yet'}; ${score} of 100, ${seen} % of the weight seen${missing}`;
  const time = seconds.toFixed(3);
  const all = [caseOf('grade', outcome(isGoodEnough ? 'pass' : 'fail', told), time), ...cases].join('');
  const count = (element: string) => all.split(`<${element} `).length - 1;
  const totals = `tests="${checks.length + 1}" failures="${count('failure')}" errors="0" skipped="${count('skipped')}"`;
  const name = markup(`petstore grade ${key}`);
  const when = `timestamp="${new Date(at).toISOString().slice(0, 19)}" time="${time}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="${name}" ${totals} ${when}>\n${all}</testsuite>\n`;
}

function caseOf(id: string, inner: string, time = '0.000'): string {
  return `  <testcase classname="petstore.grade" name="${markup(id)}" time="${time}">${inner}</testcase>\n`;
}

function outcome(verdict: 'pass' | 'fail' | 'unseen', message: string): string {
  if (verdict === 'pass') return '';
  return `<${verdict === 'fail' ? 'failure' : 'skipped'} message="${markup(message)}"/>`;
}
