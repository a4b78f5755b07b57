/** What commands print. */

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Resolves when it was taken, or nobody is there to take it: so that what waits to be read stays little. */
export function printed(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve) => stream.write(text, () => resolve()));
}

/** Columns as wide as their widest cell; `right` names those that hold numbers. */
export function table(head: string[], rows: string[][], right: string[] = []): string {
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at].length)));
  const line = (cells: string[]) =>
    cells
      .map((cell, at) => (right.includes(head[at]) ? cell.padStart(widths[at]) : cell.padEnd(widths[at])))
      .join('  ')
      .trimEnd();
  return [head, ...rows].map(line).join('\n');
}

/** Names and values under each other. */
export function facts(rows: [name: string, value: string][]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n');
}

export function count(number: number): string {
  return number.toLocaleString('en-US');
}

/** 2026-01-31T12:00:00.000Z → 2026-01-31 12:00:00 UTC */
export function when(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
}
