/**
 * Loaded into a server (`NODE_OPTIONS=--import …`): measures the longest time that a timer waited, as far as the server
 * worked itself meanwhile. At SIGUSR2 that is written to PAUSES_FILE, and measuring begins anew.
 */
import { existsSync, openSync, readSync, writeFileSync } from 'node:fs';

/** More often, the measuring would be what is measured. */
const EVERY_MS = 1;
const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;
const schedstat = existsSync(SCHEDSTAT) ? openSync(SCHEDSTAT, 'r') : undefined;
const told = Buffer.alloc(100);

/** How long this thread was ready to run while others had the processor. */
function waitedMs() {
  if (schedstat === undefined) return 0;
  const length = readSync(schedstat, told, 0, told.length, 0);
  return Number(told.toString('latin1', 0, length).split(' ')[1]) / 1e6;
}

/** Of the whole process: also of the threads that collect garbage while this one stands still for them. */
function moment() {
  for (;;) {
    const waited = waitedMs();
    const now = performance.now();
    const { user, system } = process.cpuUsage();
    if (waitedMs() === waited) return { now, waited, cpu: (user + system) / 1000 };
  }
}

let longest = 0;
let before = moment();
process.on('SIGUSR2', () => {
  writeFileSync(process.env.PAUSES_FILE, String(longest));
  longest = 0;
});

function turn() {
  const after = moment();
  const worked = Math.min(after.now - before.now - (after.waited - before.waited), after.cpu - before.cpu);
  longest = Math.max(longest, worked);
  before = after;
  setTimeout(turn, EVERY_MS);
}
turn();
