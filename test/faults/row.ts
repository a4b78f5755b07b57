/** A row of the fault matrix: something that goes wrong, and how often the store was tried against it. */
export interface Row {
  number: number;
  name: string;
  run(scale: number, report: Report): Promise<void>;
}

const MAX_FAILURES = 5;

export class Report {
  cases = 0;
  readonly failures: string[] = [];
  /** Why nothing was tried. */
  skipped: string | undefined;
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  fail(what: string): void {
    this.failures.push(what);
  }

  /** More failures tell nothing more. */
  isOver(): boolean {
    return this.failures.length >= MAX_FAILURES;
  }
}
