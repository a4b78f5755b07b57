/**
 * Judges exercise six: lets a log live on a simulated disk, crashes it at every call that changes something, and starts
 * it on what may be left then. What was acknowledged must be there, and what a start has shown must stay.
 *
 *   node docs/small/crash.ts [--of my-log.ts]     (before Node 22.18: npx tsx docs/small/crash.ts)
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { DIR, SimDisk } from '../../test/faults/sim-disk.ts';
import { below, type Random, seeded } from '../../test/random.ts';

const LIVES = 25;
const CHANGES = 8;
const STATES_PER_CALL = 6;
/** What a compacted file may have beside its pairs. */
const MAX_MORE_BYTES = 200;

const { of } = parseArgs({ options: { of: { type: 'string' } } }).values;
const url = of === undefined ? new URL('log.ts', import.meta.url).href : pathToFileURL(resolve(of)).href;
const { Log }: typeof import('./log.ts') = await import(url).catch((error: Error) => {
  console.log(`broken: it does not load: ${error.message}`);
  process.exit(1);
});
let hasVerdict = false;
process.on('exit', (status) => {
  if (hasVerdict || status === 1) return; // 1: an error that nobody has caught, which Node prints
  console.log('broken: without any crash it waits for ever');
  process.exitCode = 1;
});

/** The disk at a call, and the numbers of the contents that a start may find then. */
interface Moment {
  call: string;
  disk: SimDisk;
  changes: number;
}

const contentOf = (pairs: ReadonlyMap<string, string>) => JSON.stringify([...pairs].sort());
/** What a start finds on a disk, or why there is none. */
async function foundOn(disk: SimDisk): Promise<string> {
  try {
    const log = await Log.open(disk, DIR);
    const content = contentOf(log.pairs);
    await log.close();
    return content;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A life on this disk: each call of it, and the content after each change. `found`: what its start must find. */
async function live(disk: SimDisk, found: string, random: Random): Promise<{ moments: Moment[]; contents: string[] }> {
  const moments: Moment[] = [];
  const contents = [found];
  let seen = () => found;
  disk.onCall = (call) => {
    const changes = contents.length - 1;
    moments.push({ call, disk: disk.copy(), changes });
    if (seen() !== contents[Math.max(0, changes - 1)]) fault ??= `at '${call}' others see a change that is not durable`;
  };
  disk.slowness = random;
  const log = await Log.open(disk, DIR);
  seen = () => contentOf(log.pairs);
  for (let n = 0; n < CHANGES; n++) {
    if (random() < 0.3) await log.compact();
    const value = `${n}`.repeat(1 + below(random, random() < 0.3 ? 1_500 : 20));
    const key = 'abc'[below(random, 3)];
    const next = new Map(log.pairs).set(key, value);
    contents.push(contentOf(next)); // may be found as soon as it is begun
    await log.set(key, value);
    contents.push(contents.at(-1)!); // must be found from now on
  }
  await log.compact();
  const bytes = [...disk.names.values()].reduce((sum, { now }) => sum + now.length, 0);
  const kept = contentOf(log.pairs).length;
  if (bytes > kept + MAX_MORE_BYTES) fault ??= `after a compaction ${bytes} bytes hold ${kept}`;
  await log.close();
  moments.push({ call: 'the end', disk: disk.copy(), changes: contents.length - 1 });
  return { moments, contents };
}

/** Tries crashes at one moment, and returns a disk that one of them left, with its content. */
async function crash({ call, disk, changes }: Moment, contents: string[], random: Random) {
  const allowed = contents.slice(Math.max(0, changes - 1), changes + 1);
  for (let n = 0; n <= STATES_PER_CALL; n++) {
    const isPower = n > 0; // or the process was killed: the kernel still has what was written
    const left = isPower ? disk.afterPowerFailure(random) : disk.copy();
    const crashed = isPower ? 'a power failure' : 'a kill';
    const found = await foundOn(left);
    if (!allowed.includes(found)) return `${crashed} at '${call}' left ${short(found)}, and not ${short(allowed[0])}`;
    const later = await foundOn(left.afterPowerFailure(random));
    if (later !== found) return `a start after ${crashed} at '${call}' showed what a power failure then took back`;
  }
}
const short = (text: string) =>
  text.replace(/(\d)\1{9,}/g, (digits) => `${digits.length} × ${digits[0]}`).slice(0, 300);

let states = 0;
let fault: string | undefined;
for (let seed = 1; seed <= LIVES && fault === undefined; seed++) {
  const random = seeded(seed);
  let [disk, found] = [new SimDisk(), '[]'];
  for (let run = 0; run < 2; run++) {
    const { moments, contents } = await live(disk, found, random).catch((error: Error) => {
      fault ??= `without any crash: ${error.stack}`;
      return { moments: [], contents: [] };
    });
    for (const moment of moments) {
      fault ??= await crash(moment, contents, random);
      states += 1 + STATES_PER_CALL;
    }
    if (fault !== undefined) break;
    const { disk: last } = moments[below(random, moments.length)];
    disk = random() < 0.5 ? last.copy() : last.afterPowerFailure(random);
    found = await foundOn(disk);
  }
  if (fault !== undefined) fault += ` (life ${seed})`;
}
hasVerdict = true;
console.log(fault === undefined ? `kept: ${states} crashes lost nothing` : `broken: ${fault}`);
process.exitCode = fault === undefined ? 0 : 1;
