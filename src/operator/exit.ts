/** Exit statuses, and errors in words for the operator. */

import { BoundError } from '../store/bounds.ts';
import { VersionError } from '../store/change-json.ts';
import { DamagedError } from '../store/file/format.ts';
import { InUseError } from '../store/file/open.ts';
import { StoreError } from '../store/model.ts';
import { PROGRAM } from './version.ts';

export const EXIT = { done: 0, failed: 1, usage: 2, damaged: 3, inUse: 4, noGrade: 5 } as const;

/** Ends the program with a message for the operator and an exit status, no stack. A plain Error ends it with 1. */
export class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}

const NO_ROOM = 'make room there, and try again';
const NO_DESCRIPTORS = 'no file descriptors are left: close other programs, or raise the limit (ulimit -n)';

/** The error for the operator; undefined: a bug. `place`: the file or store to name if the error names none. */
export function asCommandError(error: unknown, place: string): CommandError | undefined {
  const { message, constructor: kind, path: at = place } = error as NodeJS.ErrnoException;
  if (error instanceof CommandError) return error;
  if (error instanceof InUseError) return new CommandError(EXIT.inUse, message);
  if (error instanceof DamagedError || error instanceof VersionError) {
    return new CommandError(EXIT.damaged, message.replaceAll('`petstore ', `\`${PROGRAM} `));
  }
  if (error instanceof BoundError) return new CommandError(EXIT.failed, message); // no disk is full
  if (error instanceof StoreError) return new CommandError(EXIT.failed, `${place}: ${message}; ${left(error)}`);
  if (kind !== Error) return undefined;
  const reason = reasonOf(error as Error);
  return new CommandError(EXIT.failed, reason === message ? message : `${at}: ${reason}`);
}

export const isInUse = (error: unknown): boolean => asCommandError(error, '')?.exit === EXIT.inUse;

export const hasNoDescriptor = ({ code = '' }: NodeJS.ErrnoException): boolean => /^E[MN]FILE$/.test(code);

function left(error: StoreError): string {
  const { failure } = error;
  if (failure === 'unknown') return 'whether the change was kept is unknown: look before you repeat it';
  return failure === 'full' ? `nothing was changed; ${NO_ROOM}` : 'nothing was changed';
}

/** `permission denied` for the system's `EACCES: permission denied, open 'data/LOCK'`; else the message itself. */
export function reasonOf(error: NodeJS.ErrnoException): string {
  if (hasNoDescriptor(error)) return NO_DESCRIPTORS;
  if (error.code === 'EEXIST' && error.syscall === 'mkdir') return 'this is a link that leads nowhere';
  const reason = /^E[A-Z\d]+: (.+?), \w+/.exec(error.message)?.[1] ?? error.message;
  return /^(ENOSPC|EDQUOT): /.test(error.message) ? `${reason}; ${NO_ROOM}` : reason;
}
