/**
 * What a run of the tests prints: a line for each file that is done, each failure with its place and its stack, what was
 * skipped and why, a summary, and last the names of what failed, which stay where a long output is cut. A run in which a
 * file held no test has failed.
 */
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

const pathOf = ({ file = '' }) => (file.startsWith('file:') ? fileURLToPath(file) : file);
/** The runner tells of each process as of a test that has the name of what it runs. */
const isProcess = (data) => data.nesting === 0 && data.file !== undefined && resolve(data.name) === pathOf(data);

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

/** `files`: the paths of all. */
export default async function* report(events, files) {
  const began = performance.now();
  const total = files.length;
  let [done, passed] = [0, 0];
  const failed = [];
  const skipped = [];
  const empty = new Set();
  /** By the file that a process runs, or in which a test stands: the tests under way, and its stderr. */
  const states = new Map();
  const stateOf = (data) => {
    const path = pathOf(data);
    if (!states.has(path)) states.set(path, { running: new Set(), stderr: '' });
    return states.get(path);
  };
  const nameOf = (data) => relative(process.cwd(), pathOf(data));
  const takes = total > MANY ? ' On two cores that takes two or three minutes.' : '';
  const named = `${total === 1 ? '1 file' : `${total} files`} of tests with Node ${process.versions.node}`;
  yield `Running ${named}; the name of each is printed when it is done.${takes}\n`;
  for await (const { type, data } of events) {
    const of = stateOf(data);
    if (type === 'test:stderr') of.stderr += data.message;
    else if (type === 'test:dequeue' && !isProcess(data)) of.running.add(data.name);
    else if (type === 'test:complete' && !isProcess(data)) of.running.delete(data.name);
    else if (type === 'test:complete') {
      const { duration_ms, error } = data.details;
      done++;
      yield `[${done}/${total}] ${nameOf(data)}: ${error ? 'FAILED, ' : ''}${(duration_ms / 1000).toFixed(1)} s\n`;
    } else if (type === 'test:pass' && data.skip !== undefined) {
      const why = typeof data.skip === 'string' ? data.skip : 'no reason is given';
      skipped.push(`${nameOf(data)}: ${data.name} (${why})`);
    } else if (type === 'test:pass' && isProcess(data))
      empty.add(nameOf(data)); // it is told of only then
    else if (data.details?.type === 'suite' && !data.details.error) continue;
    else if (type === 'test:pass') passed++;
    else if (type === 'test:fail' && !isOfOthers(data)) {
      failed.push(`${nameOf(data)}: ${data.name}`);
      const unfinished = isProcess(data) ? [...of.running].map((name) => `    not finished: ${name}\n`).join('') : '';
      yield `\nFAILED ${failed.at(-1)}\n${unfinished}${told(data.details)}${of.stderr}`;
      of.stderr = '';
    }
  }
  for (const file of empty) {
    failed.push(`${file}: there is no test in it`);
    process.exitCode = 1;
    yield `\nFAILED ${failed.at(-1)}\n`;
  }
  for (const line of skipped) yield `skipped: ${line}\n`;
  const after = `(${Math.round((performance.now() - began) / 1000)} s)`;
  yield `${passed} passed, ${failed.length} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}\n${after}\n`;
  for (const name of failed) yield `failed: ${name}\n`;
  if (passed + failed.length + skipped.length === 0) process.exitCode = 1;
}
