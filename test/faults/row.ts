/** A row of the fault matrix: something that goes wrong, and how often the store was tried against it. */
export interface Row {
  number: number;
  name: string;
  /** `dir`: an empty folder of its own. */
  run(scale: number, report: Report, dir: string): Promise<void>;
}

const MAX_FAILURES = 5;

export class Report {
  cases = 0;
  readonly failures: string[] = [];
  /** Why something was not tried. */
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

  /** One case; `judge` says what is wrong with the outcome, if anything. */
  async attempt(what: string, judge: () => Promise<string | undefined>): Promise<void> {
    this.cases++;
    const wrong = await judge().catch((error) => error.message);
    if (wrong !== undefined) this.fail(`${what}: ${wrong}`);
  }
}
