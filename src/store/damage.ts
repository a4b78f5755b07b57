const ADVICE =
  'Nothing was changed. Restore a backup, or type `petstore repair` to cut here and keep what stands before.';

/** The files are not as the store wrote them, and what is missing may have been acknowledged: it refuses to start. */
export class DamagedError extends Error {
  readonly file: string;
  readonly offset: number;
  readonly what: string;
  /** The sequence number of the record that should stand there, where that is known. */
  readonly sequence: number | undefined;

  constructor(file: string, offset: number, what: string, sequence?: number, advice = ADVICE) {
    const record = sequence === undefined ? '' : `, record ${sequence}`;
    super(`damaged data: ${file}, offset ${offset}${record}: ${what}. ${advice}`);
    this.file = file;
    this.offset = offset;
    this.what = what;
    this.sequence = sequence;
  }
}
