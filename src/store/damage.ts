import { dirname } from 'node:path';

/** Where the beginning of the snapshot is gone: no cut leaves anything. */
export const BEYOND_REPAIR =
  'Nothing was changed, and repair cannot help: there is nothing to keep. Restore a backup into an empty directory.';

/** The files are not as the store wrote them, and what is missing may have been acknowledged: it refuses to start. */
export class DamagedError extends Error {
  readonly file: string;
  readonly offset: number;
  readonly what: string;
  /** The message without what is to be done. */
  readonly finding: string;
  /** The sequence number of the record that should stand there, where that is known. */
  readonly sequence: number | undefined;

  constructor(file: string, offset: number, what: string, sequence?: number, advice = adviceFor(file)) {
    const record = sequence === undefined ? '' : `, record ${sequence}`;
    const finding = `damaged data: ${file}, offset ${offset}${record}: ${what}.`;
    super(`${finding} ${advice}`);
    this.finding = finding;
    this.file = file;
    this.offset = offset;
    this.what = what;
    this.sequence = sequence;
  }

  advising(advice: string): DamagedError {
    return new DamagedError(this.file, this.offset, this.what, this.sequence, advice);
  }
}

function adviceFor(file: string): string {
  const repair = `petstore repair --data ${dirname(file)}`;
  return `Nothing was changed. Restore a backup, or type \`${repair}\` to cut here and keep what stands before.`;
}
