/** `petstore lab`, the shortest way to a grade, and `petstore grade`, for people and for CI. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { CurrentGrade } from '../lab/history.ts';
import type { Lab } from '../lab/lab.ts';
import { shellWord } from '../text.ts';
import { readArguments } from './arguments.ts';
import type { AnyCommand, Context } from './command.ts';
import { CommandError, EXIT } from './failures.ts';
import { keyOf } from './keys.ts';
import { SERVE } from './options.ts';
import { facts, note, print, table } from './output.ts';
import { serve } from './serve.ts';
import { PROGRAM } from './version.ts';

/** The plan of its key is so large that a client under trial does not reach the limit a minute by itself. */
const WORDS = ['--lab', '--environment', 'staging', '--seed', 'demo', '--first-key', 'business'];
/** The grade does not wait for a POST that may come again only after this. */
const MAX_WAIT_MS = 120_000;

/** The part of a lab that `petstore grade` needs. */
export type Grader = Pick<Lab, 'grade'>;

/** Serves a lab in a directory of its own, which is removed at the end. */
export async function serveLab({ port }: { port: number }, commands: readonly AnyCommand[]): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), 'petstore-lab-'));
  process.on('exit', () => rmSync(data, { recursive: true, force: true }));
  const words = [...WORDS, '--port', String(port), '--data', data];
  const settings = readArguments({ name: 'lab', summary: '', options: SERVE }, words, {});
  await serve(settings, commands, (origin, first) => [
    `The console: ${origin}/#lab`,
    `The key ${first!.id}:`,
    first!.key,
    'Type next, in another terminal; between the last two run your client for half a minute:',
    `export PETSTORE_URL=${origin} PETSTORE_KEY=${first!.key}`,
    'curl -s -X POST -H "Authorization: Bearer $PETSTORE_KEY" $PETSTORE_URL/lab/drill; echo',
    `${PROGRAM} grade ${first!.id} --data ${shellWord(data)}`,
  ]);
}

export function gradeOf(context: Context, { id }: { id: string }): CurrentGrade {
  if (context.lab !== undefined) return context.lab.grade(keyOf(context, id).id);
  throw new Error('only a server with --lab grades clients, and none runs here; with --store use GET /lab/grade');
}

interface Wanted {
  id: string;
  atLeast?: 'A' | 'B' | 'C' | 'D';
  json: boolean;
}

export async function printGrade(wanted: Wanted, call: (values: Wanted) => Promise<CurrentGrade>): Promise<void> {
  const { json, atLeast = 'F' } = wanted;
  const { openMs: _, next, checks, ...result } = await settled(() => call(wanted));
  const named = { ...result, seen: `${result.seen} % of the weight` };
  const words = () => `${facts(named)}\n\n${table(checks)}${next && `\n\nNot seen yet: ${next}.`}`;
  await print(json ? JSON.stringify({ ...result, next, checks }, null, 2) : words());
  const { grade } = result;
  if (grade === null)
    throw new CommandError(EXIT.noGrade, `there is no grade yet: too little was seen. Missing: ${next}`);
  if (grade > atLeast) throw new Error(`the grade is ${grade}, not ${atLeast}`);
}

/** The grade when every POST that failed has come again or is late. */
async function settled(grade: () => Promise<CurrentGrade>): Promise<CurrentGrade> {
  for (let leftMs = MAX_WAIT_MS; ; ) {
    const newest = await grade();
    const { openMs } = newest;
    if (openMs <= 0) return newest;
    const seconds = Math.ceil(openMs / 1_000);
    const isTooLong = openMs > leftMs;
    const what = isTooLong ? 'this grade does not wait for that' : 'waiting for that';
    await note(`a POST that failed may come again within ${seconds} s: ${what}`);
    if (isTooLong) return newest;
    await wait(openMs);
    leftMs -= openMs;
  }
}
