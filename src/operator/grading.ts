/** `petstore grade`: the grade of a key's client, for people and for CI. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Grade } from '../lab/grade.ts';
import { command } from './command.ts';
import { CommandError, EXIT } from './exit.ts';
import { keyOf } from './key-details.ts';
import { id } from './keys.ts';
import { json, oneOf, optional, place } from './options.ts';
import { facts, printBefore, table, told } from './output.ts';

/** The command does not wait for a POST that was told to wait longer than this. */
const MAX_WAIT_MS = 120_000;

interface Graded {
  graded: Grade & { openMs: number };
  isGoodEnough: boolean;
}

export const GRADE = command({
  name: 'grade',
  does: 'grade the client of a key; exit 1 if the grade is lower than wanted',
  more: `Asks the server that runs with --lab on --data. Ask one with --store by GET /lab/grade, with the key. \
If a failed POST may still come again, the command waits for it, 2 minutes at most. Exit ${EXIT.noGrade} if too \
little was seen for a grade.`,
  options: {
    id,
    atLeast: optional(oneOf(['A', 'B', 'C', 'D']), 'GRADE', 'lowest grade that is good enough'),
    ...place,
    json,
  },
  reads: true,
  call: ({ engine, lab }, { id, atLeast }): Graded => {
    if (lab === undefined) {
      const why = 'only a server with --lab grades clients, and none runs on this directory';
      throw new Error(`${why}; ask one with --store by GET /lab/grade`);
    }
    const graded = lab.grade(keyOf(engine.store.read, id).id);
    const isGoodEnough = graded.grade !== null && graded.grade <= (atLeast ?? 'F');
    return { graded, isGoodEnough };
  },
  run: async ({ json, atLeast }, ask) => {
    const { graded, isGoodEnough } = await asked(ask);
    const { openMs: _, checks, next, ...result } = graded;
    const words = () => `${facts(result)}\n\n${table(checks)}${next && `\n\nNot seen yet: ${next}.`}`;
    const text = json ? JSON.stringify({ ...result, next, checks }, null, 2) : words();
    await printBefore(isGoodEnough ? undefined : shortfall(graded, atLeast), text);
  },
});

const shortfall = ({ grade, next }: Grade, atLeast: string | undefined) =>
  grade === null
    ? new CommandError(EXIT.noGrade, `there is no grade yet: too little was seen. Missing: ${next}`)
    : new CommandError(EXIT.failed, `the grade is ${grade}, not ${atLeast}`);

/** Asks until every POST that failed has come again or is late. */
async function asked(ask: () => Promise<Graded>): Promise<Graded> {
  for (let leftMs = MAX_WAIT_MS; ; ) {
    const answer = await ask();
    const { openMs } = answer.graded;
    if (openMs <= 0) return answer;
    const seconds = Math.ceil(openMs / 1_000);
    if (openMs > leftMs) {
      await told(`a POST that failed may still come again within ${seconds} s: this grade does not wait for it\n`);
      return answer;
    }
    await told(`waiting ${seconds} s: a POST that failed may still come again\n`);
    await delay(openMs);
    leftMs -= openMs;
  }
}
