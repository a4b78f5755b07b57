/** What commands print: text, lists of facts, tables, and a progress bar on a terminal. */
import { count, visible, visibleInLine } from '../text.ts';
import { CommandError, EXIT } from './failures.ts';

const REDRAW_EVERY_MS = 100;
const BAR_CHARS = 24;
const DEFAULT_COLUMNS = 80;

/** Prints a text that is safe for a terminal. False: the reader has gone away, as in `petstore export | head`. */
export function printRaw(chunk: string | Uint8Array): Promise<boolean> {
  return new Promise((resolve, reject) => {
    process.stdout.write(chunk, (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') resolve(!error);
      else reject(new CommandError(EXIT.failed, `standard output: ${error.message}`));
    });
  });
}

export const print = (text: string): Promise<boolean> => printRaw(`${visible(text)}\n`);

/** A line on stderr, in place of a progress bar. */
export function note(text: string): Promise<void> {
  clearBar();
  return new Promise((resolve) => process.stderr.write(`${visible(text)}\n`, () => resolve()));
}

/** A result as people read it: its members under each other; a new key alone on the last line. */
export function inWords(result: object): string {
  if (!('key' in result)) return facts(result);
  const { key, ...about } = result;
  return `${facts(about)}\nThe key, which is shown only once:\n${key}`;
}

export const facts = (result: object): string =>
  inColumns(Object.entries(result).map(([name, value]) => [spaced(name), textOf(value)]));

/** Rows under each other, below a heading. */
export const table = (rows: readonly Record<string, unknown>[]): string => tableInBlocks()(rows);

/**
 * A table that comes in blocks, the first with a heading: a column becomes wider where a later block needs it. Numbers
 * stand on the right.
 */
export function tableInBlocks(): (rows: readonly Record<string, unknown>[]) => string {
  const widths: number[] = [];
  let isRight: boolean[] | undefined;
  return (rows) => {
    const names = Object.keys(rows[0]);
    const cells = rows.map((row) => names.map((name) => textOf(row[name])));
    const heading = isRight ? [] : [names.map((name) => spaced(name).toUpperCase())];
    isRight ??= cells[0].map((cell) => /^[\d,/]+$/.test(cell));
    return inColumns([...heading, ...cells], widths, isRight);
  };
}

function inColumns(rows: string[][], widths: number[] = [], isRight: boolean[] = []): string {
  const shown = rows.map((row) => row.map(visibleInLine));
  for (const row of shown) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  const padded = (cell: string, at: number) => (isRight[at] ? cell.padStart(widths[at]) : cell.padEnd(widths[at]));
  return shown.map((row) => row.map(padded).join('  ').trimEnd()).join('\n');
}

/** `bannedUntil` → `banned until` */
const spaced = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function textOf(value: unknown): string {
  if (typeof value === 'string') return timeInWords(value);
  if (value === null || (Array.isArray(value) && value.length === 0)) return 'none';
  if (typeof value === 'number') return count(value);
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  if (typeof value !== 'object') return String(value);
  const members = Object.entries(value).map(([name, member]) => `${spaced(name)} ${textOf(member)}`);
  return members.join(', ');
}

/** `1 line`, `1,234 lines`. */
export const counted = (number: number, one: string): string => `${count(number)} ${number === 1 ? one : `${one}s`}`;

/** 2026-01-31T12:00:00.000Z → 2026-01-31 12:00:00 UTC; other texts stay as they are. */
export const timeInWords = (text: string): string =>
  /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d+Z$/.test(text) ? `${text.slice(0, 10)} ${text.slice(11, 19)} UTC` : text;

let isBarShown = false;

function clearBar(): void {
  if (isBarShown) process.stderr.write('\r\x1b[K');
  isBarShown = false;
}

export type Progress = (done: number, total: number) => void;

/** Shows the progress of `work` by a bar on stderr, if that is a terminal that can draw over a line. */
export async function withProgress<R>(what: string, work: (progress: Progress) => Promise<R>): Promise<R> {
  let drawnAt = 0;
  const progress: Progress = (done, total) => {
    const isSizeUnknown = total === 0; // as of a pipe
    const isDrawable = process.stderr.isTTY === true && process.env.TERM !== 'dumb';
    if (isSizeUnknown || !isDrawable || performance.now() - drawnAt < REDRAW_EVERY_MS) return;
    drawnAt = performance.now();
    isBarShown = true;
    const share = Math.min(1, done / total);
    const bar = ` [${'#'.repeat(share * BAR_CHARS).padEnd(BAR_CHARS, '.')}] ${Math.floor(share * 100)} %`;
    // Shorter than the terminal is wide: a line that was broken there could not be drawn over.
    const room = (process.stderr.columns || DEFAULT_COLUMNS) - 1;
    const line = visibleInLine(what).slice(0, Math.max(0, room - bar.length)) + bar;
    process.stderr.write(`\r${line.slice(0, room)}\x1b[K`);
  };
  return work(progress).finally(clearBar);
}
