/** Results of checks as JUnit XML, which every CI system shows. */
import { markup } from './quoting.ts';

export interface JunitCase {
  id: string;
  /** `told`: the case passed, with a remark to read; `error`: it could not be tried. */
  outcome: 'pass' | 'told' | 'fail' | 'error' | 'skipped';
  message: string;
  seconds?: number;
}

interface Suite {
  /** The name of the suite, for people. */
  name: string;
  /** The group under which CI systems show the cases. */
  className: string;
  /** Unix ms. */
  at: number;
  seconds: number;
}

export function junit({ name, className, at, seconds }: Suite, cases: readonly JunitCase[]): string {
  const count = (outcome: JunitCase['outcome']) => cases.filter((one) => one.outcome === outcome).length;
  const totals = `tests="${cases.length}" failures="${count('fail')}" errors="${count('error')}" skipped="${count('skipped')}"`;
  const when = `timestamp="${new Date(at).toISOString().slice(0, 19)}" time="${seconds.toFixed(3)}"`;
  const all = cases.map((one) => {
    const about = `classname="${markup(className)}" name="${markup(one.id)}" time="${(one.seconds ?? 0).toFixed(3)}"`;
    return `  <testcase ${about}>${innerOf(one)}</testcase>\n`;
  });
  const suite = `<testsuite name="${markup(name)}" ${totals} ${when}>\n${all.join('')}</testsuite>`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n${suite}\n`;
}

function innerOf({ outcome, message }: JunitCase): string {
  if (outcome === 'pass') return '';
  if (outcome === 'told') return `<system-out>${markup(message)}</system-out>`;
  return `<${outcome === 'fail' ? 'failure' : outcome} message="${markup(message)}"/>`;
}
