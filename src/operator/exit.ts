/** How a command ends. */
export const EXIT = { done: 0, failed: 1, usage: 2, damaged: 3, inUse: 4 } as const;

/** Ends the program with a sentence for the operator and an exit status, without a stack. */
export class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}
