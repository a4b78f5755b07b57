/**
 * What a command may ask of the store, one row a call. The same functions run in the server, asked through the admin
 * socket, and in a command's own process where no server runs.
 */
import * as v from 'valibot';
import { MAX_REQUESTS_PER_WINDOW } from '../access/plans.ts';
import { ENVIRONMENTS, PET_STATUSES, PLANS } from '../store/model.ts';
import type { Context } from './context.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import * as keys from './keys.ts';
import * as transfer from './transfer.ts';
import { compactStore, pinFiles } from './upkeep.ts';

const KEY_NAME_MAX_CHARACTERS = 100;
export const GRACE_MAX_MS = 30 * 86_400_000;

/** Fit to be printed in a table: no control characters, no line breaks. */
export const keyName = {
  allowed: `1 to ${KEY_NAME_MAX_CHARACTERS} printable characters`,
  schema: v.pipe(v.string(), v.regex(new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${KEY_NAME_MAX_CHARACTERS}}$`, 'u'))),
};

const whole = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const id = v.string();
const requests = v.pipe(whole, v.minValue(1), v.maxValue(MAX_REQUESTS_PER_WINDOW));
const planned = { plan: v.picklist(PLANS), perMinute: v.optional(requests), perDay: v.optional(requests) };
const status = v.optional(v.picklist(PET_STATUSES));
const lines = v.pipe(v.array(v.string()), v.minLength(1), v.maxLength(transfer.PART_MAX_ANIMALS));

interface Call<A, R> {
  args: v.GenericSchema<unknown, A>;
  run(context: Context, args: A): R | Promise<R>;
}

const call = <A, R>(args: v.GenericSchema<unknown, A>, run: Call<A, R>['run']): Call<A, R> => ({ args, run });

const CALLS = {
  createKey: call(
    v.object({ ...planned, name: keyName.schema, environment: v.optional(v.picklist(ENVIRONMENTS)) }),
    keys.createKey,
  ),
  listKeys: call(v.object({ after: whole }), keys.listKeys),
  showKey: call(v.object({ id }), keys.showKey),
  revokeKey: call(v.object({ id }), keys.revokeKey),
  rotateKey: call(v.object({ id, graceMs: v.pipe(whole, v.maxValue(GRACE_MAX_MS)) }), keys.rotateKey),
  liftKey: call(v.object({ id }), keys.liftKey),
  planKey: call(v.object({ id, ...planned }), keys.planKey),
  beginImport: call(v.object({}), transfer.beginImport),
  importPart: call(v.object({ import: v.string(), lines }), transfer.importPart),
  endImport: call(v.object({ import: v.string(), count: whole }), transfer.endImport),
  exportPart: call(v.object({ after: whole, status }), transfer.exportPart),
  pinFiles: call(v.object({}), pinFiles),
  compactStore: call(v.object({}), compactStore),
  stillHere: call(v.object({}), () => {}),
};

type Calls = typeof CALLS;
export type CallName = keyof Calls;
export type ArgsOf<N extends CallName> = Calls[N] extends Call<infer A, unknown> ? A : never;
export type ResultOf<N extends CallName> = Awaited<ReturnType<Calls[N]['run']>>;

/** Calls that change nothing, or one of many, are not worth a line in the log each. */
const QUIET_CALLS = ['listKeys', 'showKey', 'importPart', 'exportPart', 'stillHere'] satisfies CallName[];
export const QUIET = new Set<string>(QUIET_CALLS);

/** Checks and runs a call. Whatever goes wrong comes out as a CommandError. */
export async function runCall(context: Context, name: string, args: unknown): Promise<unknown> {
  if (!Object.hasOwn(CALLS, name)) {
    throw new CommandError(EXIT.failed, `${name}: unknown to a server of another version`);
  }
  // Which call it is, is no longer known; its schema stands between what came and what it runs with.
  const { args: schema, run } = CALLS[name as CallName] as Call<unknown, unknown>;
  const checked = v.safeParse(schema, args);
  if (!checked.success) throw new CommandError(EXIT.failed, `${name}: ${v.summarize(checked.issues)}`);
  try {
    return await run(context, checked.output);
  } catch (error) {
    throw asCommandError(error, context.dir);
  }
}

/** Undoes what a caller left half-done. What fails now is undone by the next start. */
export async function undoUnfinished({ unfinished }: Context): Promise<void> {
  for (const undo of unfinished.values()) await undo().catch(() => {});
  unfinished.clear();
}
