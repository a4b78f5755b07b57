/** Exit statuses, and the one place where an error becomes a message for the operator. */
import { resolve } from 'node:path';
import { DamagedError, InUseError, NoStoreError, VersionError } from '../store/engine.ts';
import { StoreError } from '../store/model.ts';

export const EXIT = { done: 0, failed: 1, usage: 2, damaged: 3, inUse: 4 } as const;

/** Ends the program with a message and an exit status. A plain Error ends it with status 1. */
export class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}

/** The error for the operator; undefined: a bug. `subject`: the store or file to name if the error names none. */
export function asCommandError(error: unknown, subject: string): CommandError | undefined {
  if (error instanceof CommandError) return error;
  const { message, path = subject, constructor: kind } = error as NodeJS.ErrnoException;
  if (error instanceof NoStoreError) {
    return new CommandError(EXIT.failed, `there is no store in ${resolve(error.dir)}: name its directory with --data`);
  }
  if (error instanceof InUseError) return new CommandError(EXIT.inUse, message);
  if (error instanceof DamagedError || error instanceof VersionError) return new CommandError(EXIT.damaged, message);
  if (error instanceof StoreError) {
    const text = message.startsWith(`${subject}: `) ? message : `${subject}: ${message}`;
    return new CommandError(EXIT.failed, `${text}; ${outcomeOf(error)}`);
  }
  if (kind !== Error) return undefined;
  const reason = reasonOf(error as Error);
  return new CommandError(EXIT.failed, reason === message ? message : `${path}: ${reason}`);
}

function outcomeOf({ failure }: StoreError): string {
  if (failure === 'unknown') return 'it is unknown whether the change was made: look before you repeat it';
  return failure === 'full' ? 'nothing was changed: make room, and type it again' : 'nothing was changed';
}

/** `permission denied` for the system's `EACCES: permission denied, open 'data/LOCK'`; else the message itself. */
export const reasonOf = ({ message }: Error): string => /^E[A-Z\d]+: (.+?), \w+/.exec(message)?.[1] ?? message;
