/** How a command ends. */
import { DamagedError } from '../store/file/format.ts';
import { InUseError } from '../store/file/lock.ts';
import { StoreError } from '../store/model.ts';
import { NewerError } from '../store/record.ts';
import { PROGRAM } from './version.ts';

export const EXIT = { done: 0, failed: 1, usage: 2, damaged: 3, inUse: 4 } as const;

/** Ends the program with a sentence for the operator and an exit status, without a stack. */
export class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}

const NO_ROOM = 'make room there, and try again';
const NO_DESCRIPTORS = 'no file descriptors are left: close other programs, or raise the limit (ulimit -n)';

/**
 * What failed, as it is told to the operator; a bug stays what it is, with its stack. `place`: where it happened, if
 * the error does not say.
 */
export function asCommandError(error: unknown, place: string): Error {
  const { message, constructor: kind } = error as Error;
  if (error instanceof DamagedError || error instanceof NewerError) {
    return new CommandError(EXIT.damaged, message.replaceAll('`petstore ', `\`${PROGRAM} `));
  }
  if (isInUse(error)) return new CommandError(EXIT.inUse, message);
  if (error instanceof StoreError) return new CommandError(EXIT.failed, `${place}: ${message}; ${left(error)}`);
  return kind === Error ? new CommandError(EXIT.failed, systemReason(error as Error, place)) : (error as Error);
}

export const isInUse = (error: unknown): boolean =>
  error instanceof InUseError || (error instanceof CommandError && error.exit === EXIT.inUse);

export const hasNoDescriptor = ({ code = '' }: NodeJS.ErrnoException): boolean => /^E[MN]FILE$/.test(code);

function left({ failure }: StoreError): string {
  if (failure === 'unknown') return 'whether the change was kept is unknown: look before you repeat it';
  return failure === 'full' ? `nothing was changed; ${NO_ROOM}` : 'nothing was changed';
}

/** `data/LOCK: permission denied` for the system's `EACCES: permission denied, open 'data/LOCK'`. */
function systemReason(error: NodeJS.ErrnoException, place: string): string {
  const { code = '', message, path: at = place } = error;
  if (hasNoDescriptor(error)) return `${at}: ${NO_DESCRIPTORS}`;
  const reason = /^E[A-Z\d]+: (.+?), \w+/.exec(message)?.[1];
  if (reason === undefined) return message;
  return `${at}: ${reason}${code === 'ENOSPC' || code === 'EDQUOT' ? `; ${NO_ROOM}` : ''}`;
}
