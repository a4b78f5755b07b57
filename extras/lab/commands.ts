/** The lab of a server; `petstore lab`, the shortest way to a grade; and `petstore grade`, for people and for CI. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { asset } from '../../src/assets.ts';
import type { Addition, Opening } from '../../src/extra.ts';
import { check } from '../../src/operator/arguments.ts';
import type { Context, Here, Program } from '../../src/operator/command.ts';
import { keyOf } from '../../src/operator/keys.ts';
import { SERVE } from '../../src/operator/options.ts';
import { CommandError, inWords, note, printLine, table } from '../../src/operator/output.ts';
import { serve } from '../../src/operator/serve.ts';
import { PROGRAM } from '../../src/operator/version.ts';
import type { Engine } from '../../src/store/engine.ts';
import { shellWord } from '../../src/text.ts';
import type { CurrentGrade } from './history.ts';
import { Lab } from './lab.ts';

/** The plan of its key is so large that a client under trial does not reach the limit a minute by itself. */
const SETTINGS = { environment: 'staging', seed: 'demo', firstKey: 'business' };
/** The grade does not wait for a POST that may come again only after this. */
const MAX_WAIT_MS = 120_000;

/** The exit status of `grade` while there is none. */
const NO_GRADE = 5;

/** The lab of the server on an engine: a process has one at most. */
const labs = new WeakMap<Engine, Lab>();

/** The lab of a server that opens. A reset makes the store what the seed of this start holds. */
export async function openLab({ engine, clock, settings, seed }: Opening): Promise<Addition> {
  const { store, limiter } = engine;
  const isForPages = settings.corsOrigin !== undefined;
  const lab = new Lab({ store, limiter, clock, content: await seed(), isForPages });
  labs.set(engine, lab);
  return { endpoints: lab.endpoints, around: lab.around, document: asset('extras/lab/assets/openapi.json') };
}

/** Serves a lab in a directory of its own, which is removed at the end. */
export async function serveLab(port: number, program: Program): Promise<void> {
  const data = mkdtempSync(join(tmpdir(), 'petstore-lab-'));
  process.on('exit', () => rmSync(data, { recursive: true, force: true }));
  const texts = { ...SETTINGS, port: String(port), data };
  const settings = { ...check(SERVE, { texts, labelOf: String }), lab: true };
  await serve(settings, program, (origin, first) => [
    `The key ${first!.id}:`,
    first!.key,
    'Type next, in another terminal; between the last two run your client for half a minute:',
    `export PETSTORE_URL=${origin} PETSTORE_KEY=${first!.key}`,
    'curl -s -X POST -H "Authorization: Bearer $PETSTORE_KEY" $PETSTORE_URL/lab/drill; echo',
    `${PROGRAM} grade ${first!.id} --data ${shellWord(data)}`,
  ]);
}

export function gradeOf(context: Context, id: string): CurrentGrade {
  const lab = labs.get(context.engine);
  if (lab !== undefined) return lab.grade(keyOf(context, id).id);
  throw new Error('only a server with --lab grades clients, and none runs here; with --store use GET /lab/grade');
}

interface Wanted {
  id: string;
  atLeast?: string;
}

export async function printGrade({ id, atLeast = 'F' }: Wanted, { ask, json }: Here): Promise<void> {
  const { openMs: _, next, checks, ...result } = await settled(async () => (await ask({ id })) as CurrentGrade);
  const named = { ...result, seen: `${result.seen} % of the weight` };
  const words = () => `${inWords(named)}\n\n${table(checks)}${next && `\n\nNot seen yet: ${next}.`}`;
  await printLine(json ? JSON.stringify({ ...result, next, checks }, null, 2) : words());
  const { grade } = result;
  if (grade === null) throw new CommandError(NO_GRADE, `there is no grade yet: too little was seen. Missing: ${next}`);
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
