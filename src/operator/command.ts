/** A command: what it takes, what it does, and how its result is told. */
import { type Said, type Spec, saidIn, valuesOf } from './arguments.ts';
import type { Call, Context, Io } from './context.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import type { Options, Values } from './options.ts';
import { inWords, print } from './output.ts';
import { type Ends, reach } from './reach.ts';
import { onePlace, placeOf, shownPlace } from './settings.ts';

/** Does the command's call, in the running server or here. */
type Ask<A> = (ends?: Partial<Ends>) => Promise<A>;

interface Work<O extends Options, A, R> extends Spec<O> {
  /** What is done where the store is. */
  call?(context: Context, values: Values<O>, io: Io): A | Promise<A>;
  /** Its call changes nothing: it works on a read-only mount. */
  reads?: boolean;
  /** Its call begins a store where there is none. */
  makes?: boolean;
  /** What to do where nobody knows whether it was done, or nobody has read a result that is printed once. */
  unsure?: string;
  /** What is done in the process of the command; if not given, its call alone. */
  run?(values: Values<O>, ask: Ask<A>): R | Promise<R>;
  /** The result for people, where its members under each other will not do. `--json` prints it as it is. */
  words?(result: R): string;
}

export interface Command {
  spec: Spec<Options>;
  call: Call | undefined;
  /** Checks what was said, and touches nothing; what comes back does the work. */
  prepare(words: readonly string[], variables: NodeJS.ProcessEnv): () => Promise<void>;
}

export function command<O extends Options, A = undefined, R = A>(work: Work<O, A, R>): Command {
  const check: Spec<O>['check'] = (values, given) => onePlace(given) ?? work.check?.(values, given);
  const spec: Spec<O> = { ...work, check };
  const call = work.call && {
    reads: work.reads === true,
    run: async (context: Context, said: Said, io: Io) => work.call?.(context, valuesOf(spec, said), io),
  };
  const prepare: Command['prepare'] = (words, variables) => {
    const said = saidIn(spec as Spec<Options>, words, variables);
    const values = valuesOf(spec, said);
    return () => finish(work, call, said, values);
  };
  return { spec: spec as Spec<Options>, call, prepare };
}

async function* nothing(): AsyncGenerator<Buffer> {}

async function finish<O extends Options, A, R>(
  { name, makes = false, unsure, run, words = inWords as (result: R) => string }: Work<O, A, R>,
  call: Call | undefined,
  said: Said,
  values: Values<O>,
): Promise<void> {
  const place = placeOf(values);
  let closing: Error | undefined;
  const ask: Ask<A> = async ({ input = nothing(), tell = print } = {}) => {
    const asked = { name, said, call: call!, makes, unsure: unsure ?? 'look before you repeat it' };
    const reached = await reach(place, asked, { input, tell });
    closing = reached.closing;
    return reached.result as A;
  };
  try {
    const result = run === undefined ? ((await ask()) as unknown as R) : await run(values, ask);
    const isJson = 'json' in values && values.json === true;
    if (result !== undefined)
      await print(isJson ? JSON.stringify(result, null, 2) : words(result)).catch(unread(unsure));
  } catch (error) {
    throw asCommandError(error, shownPlace(place));
  }
  if (closing === undefined) return;
  const why = asCommandError(closing, shownPlace(place)).message;
  throw new CommandError(EXIT.failed, `this was done, but the store could not be closed: ${why}`);
}

const unread = (unsure: string | undefined) => (error: CommandError) => {
  if (unsure === undefined) throw error;
  throw new CommandError(EXIT.failed, `${error.message || 'nobody read the output'}; ${unsure}`);
};
