/**
 * What a run of the tests prints: a line for each file that is done, each failure with its place and its stack, what was
 * skipped and why, and a summary. A run in which a file held no test has failed.
 */
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

const pathOf = ({ file = '' }) => (file.startsWith('file:') ? fileURLToPath(file) : file);
const fileOf = (data) => relative(process.cwd(), pathOf(data));
/** The runner tells of each file as of a test that has the file's name; as passed only where no test was in it. */
const isFile = (data) => data.nesting === 0 && data.file !== undefined && resolve(data.name) === pathOf(data);

/** Any value may be thrown, and String() throws on some of them. */
const textOf = (thrown) => [thrown.stack, thrown].find((one) => typeof one === 'string') ?? inspect(thrown);

/** The error of the test itself, and what caused it; the runner wraps it in one of its own. */
function told({ error }) {
  const own = error?.cause ?? error;
  const stacks = [own, own?.cause].filter((one) => one != null).map(textOf);
  const lines = stacks.join('\ncaused by ').split('\n');
  return lines.map((line) => (/^\s+at .*\(?node:internal/.test(line) ? '' : `    ${line}\n`)).join('');
}

/** A suite fails because of a test in it, which is told itself. */
const isOfOthers = ({ details }) => details.error?.failureType === 'subtestsFailed';

/** So many files are the whole of `npm test`. */
const MANY = 50;

/** Of a file: which of its tests are under way, and what it wrote to stderr. */
class File {
  running = new Set();
  stderr = '';
}

export default async function* report(events) {
  const began = performance.now();
  const total = Number(process.env.PETSTORE_TEST_FILES);
  let done = 0;
  let passed = 0;
  let failed = 0;
  const skipped = [];
  const known = new Map();
  const of = (data) => known.get(data.file) ?? known.set(data.file, new File()).get(data.file);
  const files = total === 1 ? '1 file' : `${total} files`;
  const takes = total > MANY ? ' On two cores that takes two or three minutes.' : '';
  yield `Running ${files} of tests with Node ${process.versions.node}; the name of each is printed when it is done.${takes}\n`;
  for await (const { type, data } of events) {
    if (type === 'test:stderr') of(data).stderr += data.message;
    else if (type === 'test:dequeue' && !isFile(data)) of(data).running.add(data.name);
    else if (type === 'test:complete' && !isFile(data)) of(data).running.delete(data.name);
    else if (type === 'test:complete') {
      const { details } = data;
      const time = `${(details.duration_ms / 1000).toFixed(1)} s`;
      yield `[${++done}/${total}] ${fileOf(data)}: ${details.error ? 'FAILED, ' : ''}${time}\n`;
    } else if (type === 'test:pass' && data.skip !== undefined) {
      const why = typeof data.skip === 'string' ? data.skip : 'no reason is given';
      skipped.push(`${fileOf(data)}: ${data.name} (${why})`);
    } else if (type === 'test:pass' && isFile(data)) {
      failed++;
      process.exitCode = 1;
      yield `\nFAILED ${fileOf(data)}: there is no test in it\n`;
    } else if (data.details?.type === 'suite' && !data.details.error) continue;
    else if (type === 'test:pass') passed++;
    else if (type === 'test:fail' && !isOfOthers(data)) {
      failed++;
      const file = of(data);
      const unfinished = isFile(data) ? [...file.running].map((name) => `    not finished: ${name}\n`).join('') : '';
      yield `\nFAILED ${fileOf(data)}: ${data.name}\n${unfinished}${told(data.details)}${file.stderr}`;
      file.stderr = '';
    }
  }
  for (const line of skipped) yield `skipped: ${line}\n`;
  const after = `(${Math.round((performance.now() - began) / 1000)} s)`;
  yield `${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}\n${after}\n`;
  if (passed + failed + skipped.length === 0) process.exitCode = 1;
}
