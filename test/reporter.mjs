/** What a run of the tests prints: each failure with its place and its stack, what was skipped and why, and a summary. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const fileOf = ({ file = '' }) => relative(process.cwd(), file.startsWith('file:') ? fileURLToPath(file) : file);

/** The error of the test itself, and what caused it; the runner wraps it in one of its own. */
function told({ error }) {
  const own = error?.cause ?? error;
  const stacks = [own, own?.cause].filter((one) => one != null).map((one) => one.stack ?? String(one));
  const lines = stacks.join('\ncaused by ').split('\n');
  return lines.map((line) => (/^\s+at .*\(?node:internal/.test(line) ? '' : `    ${line}\n`)).join('');
}

/** A suite fails because of a test in it, which is told itself. */
const isOfOthers = ({ details }) => details.error?.failureType === 'subtestsFailed';

export default async function* report(events) {
  const began = performance.now();
  let passed = 0;
  let failed = 0;
  const skipped = [];
  /** By file: shown only where a test of it fails. */
  const stderr = new Map();
  for await (const { type, data } of events) {
    if (type === 'test:stderr') stderr.set(data.file, (stderr.get(data.file) ?? '') + data.message);
    if (type === 'test:pass' && data.skip !== undefined) {
      const why = typeof data.skip === 'string' ? data.skip : 'no reason is given';
      skipped.push(`${fileOf(data)}: ${data.name} (${why})`);
    } else if (data.details?.type === 'suite' && !data.details.error) continue;
    else if (type === 'test:pass') passed++;
    else if (type === 'test:fail' && !isOfOthers(data)) {
      failed++;
      yield `\nFAILED ${fileOf(data)}: ${data.name}\n${told(data.details)}${stderr.get(data.file) ?? ''}`;
      stderr.delete(data.file);
    }
  }
  for (const line of skipped) yield `skipped: ${line}\n`;
  const seconds = Math.round((performance.now() - began) / 1000);
  yield `${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}\n(${seconds} s)\n`;
}
