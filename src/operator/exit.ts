/** How a command ends. */
import { DamagedError } from '../store/damage.ts';
import { InUseError } from '../store/lock.ts';
import { StoreError } from '../store/model.ts';

export const EXIT = { done: 0, failed: 1, usage: 2, damaged: 3, inUse: 4 } as const;

/** Ends the program with a sentence for the operator and an exit status, without a stack. */
export class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}

/** What failed in the store, as it is told to the operator. `place`: where, if the error does not say. */
export function asCommandError(error: unknown, place?: string): CommandError {
  if (error instanceof CommandError) return error;
  const { message } = error as Error;
  if (error instanceof DamagedError) return new CommandError(EXIT.damaged, message);
  if (error instanceof InUseError) return new CommandError(EXIT.inUse, message);
  if (!(error instanceof StoreError)) return new CommandError(EXIT.failed, systemReason(error as Error, place));
  const at = place !== undefined && error.failure === 'full' ? `${place}: ` : '';
  const kept = error.failure === 'unknown' ? 'a restart will tell whether it was kept' : 'nothing was changed';
  return new CommandError(EXIT.failed, `${at}${message}; ${kept}`);
}

/** `data/LOCK: permission denied` for the system's `EACCES: permission denied, open 'data/LOCK'`. */
function systemReason({ code, message, path }: NodeJS.ErrnoException, place?: string): string {
  const reason = /^E[A-Z\d]+: (.+?), \w+/.exec(message)?.[1];
  const at = path ?? place;
  if (reason === undefined || at === undefined) return message;
  return `${at}: ${reason}${code === 'ENOSPC' || code === 'EDQUOT' ? '; make room there, and try again' : ''}`;
}
