/** A grade as JUnit XML: each check is a test, and the grade itself is one. */
import { type JunitCase, junit } from '../junit.ts';
import type { Grade } from './grade.ts';

const OUTCOMES = { pass: 'pass', warn: 'told', fail: 'fail', unseen: 'skipped' } as const;

/** `at`: Unix ms; `seconds`: the time that the client was watched. */
export function junitOf(
  key: string,
  { grade, score, seen, next, checks }: Grade,
  { isGoodEnough, at, seconds }: { isGoodEnough: boolean; at: number; seconds: number },
): string {
  const cases = checks.map(({ id, verdict, why, requestIds }): JunitCase => {
    const evidence = requestIds.length === 0 ? why : `${why}; requests: ${requestIds.join(', ')}`;
    return { id, outcome: OUTCOMES[verdict], message: verdict === 'warn' ? `warning: ${evidence}` : evidence };
  });
  const missing = grade === null ? `; for a grade: ${next}` : '';
  const told = `grade: ${grade ?? 'none yet'}; ${score} of 100, ${seen} % of the weight seen${missing}`;
  const whole: JunitCase = { id: 'grade', outcome: isGoodEnough ? 'pass' : 'fail', message: told, seconds };
  return junit({ name: `petstore grade ${key}`, className: 'petstore.grade', at, seconds }, [whole, ...cases]);
}
