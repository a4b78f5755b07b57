/**
 * What a command may ask of the store. The same functions run in the server, asked through the admin socket, and in a
 * command's own process where no server runs.
 */
import * as v from 'valibot';
import { StoreError } from '../store/model.ts';
import type { Context } from './context.ts';
import { CommandError, EXIT } from './exit.ts';
import {
  createKey,
  creation,
  liftKey,
  listKeys,
  named,
  paged,
  planKey,
  replanning,
  revokeKey,
  rotateKey,
  rotation,
  showKey,
} from './keys.ts';
import { beginImport, beginning, endImport, ending, exporting, exportPart, importPart, part } from './transfer.ts';
import { compactStore, nothing, pinFiles } from './upkeep.ts';

interface Call<A, R> {
  args: v.GenericSchema<unknown, A>;
  run(context: Context, args: A): R | Promise<R>;
}

const call = <A, R>(args: v.GenericSchema<unknown, A>, run: Call<A, R>['run']): Call<A, R> => ({ args, run });

const CALLS = {
  createKey: call(creation, createKey),
  listKeys: call(paged, listKeys),
  showKey: call(named, showKey),
  revokeKey: call(named, revokeKey),
  rotateKey: call(rotation, rotateKey),
  liftKey: call(named, liftKey),
  planKey: call(replanning, planKey),
  beginImport: call(beginning, beginImport),
  importPart: call(part, importPart),
  endImport: call(ending, endImport),
  exportPart: call(exporting, exportPart),
  pinFiles: call(nothing, pinFiles),
  compactStore: call(nothing, compactStore),
};

type Calls = typeof CALLS;
export type CallName = keyof Calls;
export type ArgsOf<N extends CallName> = Calls[N] extends Call<infer A, unknown> ? A : never;
export type ResultOf<N extends CallName> = Awaited<ReturnType<Calls[N]['run']>>;

/** A call whose types are no longer known; its schema stands between what came and what it runs with. */
interface AnyCall {
  args: v.GenericSchema<unknown, unknown>;
  run(context: Context, args: never): unknown;
}

const BY_NAME = new Map<string, AnyCall>(Object.entries(CALLS));

/** Calls that change nothing, or one of many, are not worth a line in the log each. */
const QUIET = new Set<string>(['listKeys', 'showKey', 'importPart', 'exportPart'] satisfies CallName[]);

export const isQuiet = (name: string): boolean => QUIET.has(name);

/** Checks and runs a call. Whatever goes wrong comes out as a CommandError. */
export async function runCall(context: Context, name: string, args: unknown): Promise<unknown> {
  const found = BY_NAME.get(name);
  if (found === undefined) throw new CommandError(EXIT.failed, `${name}: unknown to a server of another version`);
  const checked = v.safeParse(found.args, args);
  if (!checked.success) throw new CommandError(EXIT.failed, `${name}: ${v.summarize(checked.issues)}`);
  try {
    return await found.run(context, checked.output as never);
  } catch (error) {
    throw asCommandError(error);
  }
}

/** Undoes what a caller left half-done. What fails now is undone by the next start. */
export async function undoUnfinished(context: Context): Promise<void> {
  for (const undo of context.unfinished.values()) await undo().catch(() => {});
  context.unfinished.clear();
}

function asCommandError(error: unknown): CommandError {
  if (error instanceof CommandError) return error;
  if (error instanceof StoreError) {
    const kept = error.failure === 'unknown' ? 'a restart will tell whether it was kept' : 'nothing was changed';
    return new CommandError(EXIT.failed, `${error.message}; ${kept}`);
  }
  return new CommandError(EXIT.failed, (error as Error).message);
}
