/** What commands print. */
import { CommandError, EXIT } from './exit.ts';

export const print = (text: string): Promise<void> => printed(`${text}\n`);

/** Resolves when it was taken, so that what waits to be read stays little; if it is not, the command ends, in order. */
export function printed(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(notTaken(error)) : resolve()));
  });
}

/** Whoever reads our output may stop, as `petstore export | head` does: then we are done, and there is nothing to say. */
function notTaken({ code, message }: NodeJS.ErrnoException): CommandError {
  if (code === 'EPIPE') return new CommandError(EXIT.done, '');
  return new CommandError(EXIT.failed, `not all could be printed: ${message}`);
}

/** The same for stderr. Whoever reads our messages may stop as well; what was asked for is still done. */
export function told(text: string): Promise<void> {
  return new Promise((resolve) => process.stderr.write(text, () => resolve()));
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
