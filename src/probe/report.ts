/** The report of a run, as a table, as JSON and as JUnit; the comparison with an earlier run; the ids that fail it. */
import { type JunitCase, junit } from '../junit.ts';
import type { Judgement } from './row.ts';

export interface Result extends Judgement {
  id: string;
  rule: string;
  sent: string;
  arrived: string;
  came: string;
  /** The verdict in the run it is compared with, if that differs. */
  changed?: string;
}

export interface Run {
  through: string;
  at: string;
  cases: Result[];
  seconds: number;
  /** Requests at the listener that were none of the probe's. */
  strangers: number;
  /** The reason why there are no cases, or why some were not reached. */
  error?: string;
}

interface Settings {
  /** Ids that may break. */
  accepted: readonly string[];
  /** An earlier run: then only the changes since decide. */
  before?: Pick<Run, 'cases'>;
}

/** The run for programs if no case could be tried: an error in place of cases. */
export const failedRun = (through: string, error: string): Run => {
  return { through, at: new Date().toISOString(), cases: [], seconds: 0, strangers: 0, error };
};

/** The run as JSON, as a table and as JUnit, and the ids that make it fail. */
export function report(run: Run, { accepted, before }: Settings) {
  const cases = before === undefined ? run.cases : compare(run.cases, before.cases);
  const failed = failing(cases, accepted, before !== undefined);
  const { through, at, seconds, error } = run;
  const suite = { name: `petstore probe ${through}`, className: 'petstore.probe', at: Date.parse(at), seconds };
  const whole: JunitCase[] = error === undefined ? [] : [{ id: 'gateway', outcome: 'error', message: error }];
  return {
    document: JSON.stringify({ through, at, cases, error }, null, 2),
    table: tableOf({ ...run, cases }, accepted),
    xml: junit(suite, [...whole, ...cases.map((one) => junitOf(one, failed))]),
    failed,
  };
}

function junitOf(
  { id, verdict, rule, why, changed, sent, arrived, came }: Result,
  failed: readonly string[],
): JunitCase {
  const told = [verdict, rule, why, changed && `changed: ${changed}`].filter(Boolean).join(': ');
  const message = `${told}; sent ${sent}; arrived ${arrived}; came ${came}`;
  return { id, outcome: failed.includes(id) ? 'fail' : verdict === 'same' ? 'pass' : 'told', message };
}

/** A case that was not tried for want of time: nobody knows its verdict. */
export const NO_TIME = 'not reached: the time for all cases together was over';

/** Compares verdicts, and for `allowed` the words: bytes always differ. A case that one run lacks is no change. */
function compare(cases: readonly Result[], before: readonly Result[]): Result[] {
  return cases.map((one) => {
    const other = before.find(({ id, why }) => id === one.id && why !== NO_TIME) ?? one;
    const isOther = other.verdict !== one.verdict || (one.verdict === 'allowed' && other.why !== one.why);
    return isOther ? { ...one, changed: `it was ${inWords(other)}` } : one;
  });
}

const inWords = ({ verdict, why }: Judgement) => (why === '' ? verdict : `${verdict}: ${why}`);

/** Ids, one a line; remarks begin with `#`. */
export const idsIn = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.replace(/#.*/, '').trim())
    .filter((line) => line !== '');

const ENDS = ['sent', 'arrived', 'came'] as const;
const MAX_SHORT_CHARS = 20;

/** `GET /…/pets` and `103+200`. */
function inShort(arrived: string, came: string): string[] {
  const line = arrived.split(' HTTP/')[0].replace(/probe-[\da-f]+-\d+/, '…');
  const statuses = [...came.matchAll(/(?:^|\| )HTTP\/1\.\d (\d{3})/g)].map(([, status]) => status);
  return [line.slice(0, MAX_SHORT_CHARS) || 'nothing', statuses.join('+') || 'nothing'];
}

/** One line a case, with the request and the reply in short; below cases that are not the same, the bytes. */
function tableOf({ cases, strangers }: Run, accepted: readonly string[]): string {
  const rows = cases.map(({ id, verdict, sent, arrived, came }) => [
    id,
    verdict,
    ...(sent ? inShort(arrived, came) : []),
  ]);
  const widths = [0, 1, 2, 3].map((at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const lines = cases.flatMap((one, at) => {
    const { id, verdict, rule, why, changed } = one;
    const isAccepted = verdict === 'breaks' && accepted.includes(id);
    const told = verdict === 'same' ? why : `${rule}: ${why}${isAccepted ? ' (accepted)' : ''}`;
    const cells = widths.map((width, column) => (rows[at][column] ?? '').padEnd(width)).filter((cell) => cell !== '');
    const evidence = verdict !== 'same' || changed !== undefined ? ENDS.filter(() => one.sent) : [];
    return [
      `${cells.join('  ')}  ${told}`.trimEnd(),
      ...(changed === undefined ? [] : [`    changed: ${changed}`]),
      ...evidence.map((end) => `    ${end.padEnd(8)} ${one[end] || 'nothing'}`),
    ];
  });
  const count = (verdict: string) => cases.filter((one) => one.verdict === verdict).length;
  const total = `${cases.length} cases: ${count('same')} same, ${count('allowed')} allowed, ${count('breaks')} ${count('breaks') === 1 ? 'breaks' : 'break'}`;
  const idle = accepted.filter((id) => cases.some((one) => one.id === id && one.verdict !== 'breaks'));
  return [
    ...lines,
    '',
    total,
    ...(idle.length > 0 ? [`accepted, though nothing breaks: ${idle.join(', ')}`] : []),
    ...(strangers > 0 ? [`${strangers} requests that are none of the probe's were answered 421`] : []),
  ].join('\n');
}

/** The ids that decide: with a run to compare with, the changed cases; else those that break and are not accepted. */
function failing(cases: readonly Result[], accepted: readonly string[], isCompared: boolean): string[] {
  const isBad = ({ id, verdict, changed }: Result) =>
    isCompared ? changed !== undefined : verdict === 'breaks' && !accepted.includes(id);
  return cases.filter(isBad).map(({ id }) => id);
}
