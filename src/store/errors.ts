/** Why a store could not be opened. Each class has an exit status of its own; any other error is status 1. */
import { StoreError } from './model.ts';

const ADVICE =
  'Nothing was changed. Restore a backup; docs/operating.md says how to cut the file there if you have none, and what that risks.';

/** What was written is not what is read: while the store is opened, or later by a request. Exit status 3. */
export class DamagedError extends StoreError {
  constructor(where: string, what: string, advice = ADVICE) {
    super('unavailable', `damaged data: ${where}: ${what}. ${advice}`);
  }
}

/** There is no store in the directory, and none is to be made. */
export class NoStoreError extends Error {
  readonly dir: string;

  constructor(dir: string) {
    super(`there is no store in ${dir}`);
    this.dir = dir;
  }
}

/** Another process has the store open. Exit status 4. */
export class InUseError extends Error {}

/** The store was written in another format: it is not damaged, and stays as it is. */
export class VersionError extends Error {}
