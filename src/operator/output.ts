/** The output of commands, and the progress bar on a terminal. */
import { fstatSync, statSync } from 'node:fs';
import { devNull } from 'node:os';
import { count } from '../digits.ts';
import { visible, visibleInLine } from '../quoting.ts';
import type { Progress } from '../store/file/read.ts';
import { CommandError, EXIT } from './exit.ts';

const REDRAW_EVERY_MS = 100;
const BAR_CHARS = 24;
/** The least room for the name of the work beside its bar; on a narrower terminal there is no bar. */
const MIN_WHAT_CHARS = 16;
const DEFAULT_COLUMNS = 80;
/** The least room for a cell that goes on below itself; with less it stands below its row, at that margin. */
const MIN_FOLDED_CHARS = 24;
const FOLDED_MARGIN = 4;
const MIN_MOMENT_CHARS = '2026-01-31T12:00:00.0Z'.length;

/**
 * Resolves when the text was taken, so that little output waits in memory. A reader that goes away, as in
 * `petstore export | head`, ends the command without a message.
 */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(`${visible(text)}\n`, (error?: NodeJS.ErrnoException | null) => {
      if (!error) resolve();
      else if (error.code === 'EPIPE') reject(new CommandError(EXIT.done, ''));
      else reject(new CommandError(EXIT.failed, `not all could be printed: ${error.message}`));
    });
  });
}

/** Prints, and then throws what was found: a reader that goes away, as of `petstore grade k1 | head`, hides no failure. */
export async function printBefore(failure: Error | undefined, text: string): Promise<void> {
  const printed = print(text);
  if (failure === undefined) return printed;
  await printed.catch(() => {}); // of two failures the first is told
  throw failure;
}

/** Whether nobody reads our output: in place of a closed output, Node opens the null device. */
export function isDiscarded(): boolean {
  return fstatSync(process.stdout.fd).rdev === statSync(devNull).rdev;
}

/** Writes to stderr, in place of a progress bar. A reader of messages that goes away does not stop the command. */
export function told(text: string): Promise<void> {
  clearBar();
  return new Promise((resolve) => process.stderr.write(visible(text), () => resolve()));
}

/** A result as people read it: its members under each other; a new key alone on the last line. */
export function inWords(result: object): string {
  if (!('key' in result)) return facts(result);
  const { key, ...about } = result;
  return `${facts(about)}\nThe key, which is shown only once:\n${key}`;
}

export const facts = (result: object): string =>
  inColumns(
    Object.entries(result).map(([name, value]) => [spaced(name), textOf(value)]),
    { columns: columnsOf(process.stdout) },
  );

/**
 * Things under each other, their members in columns; numbers stand on the right. They come in blocks, the first with a
 * heading: a column becomes wider where a later one needs it. `columns`: those of the terminal, if its text goes to one.
 */
export function tableInBlocks(columns?: number): (rows: readonly Record<string, unknown>[]) => string {
  const widths: number[] = [];
  let isRight: boolean[] | undefined;
  return (rows) => {
    const names = Object.keys(rows[0]);
    const cells = rows.map((row) => names.map((name) => textOf(row[name])));
    const heading = isRight ? [] : [names.map((name) => spaced(name).toUpperCase())];
    isRight ??= cells[0].map((cell) => /^[\d,/]+$/.test(cell));
    return inColumns([...heading, ...cells], { isRight: (at) => isRight?.[at] === true, widths, columns });
  };
}

/** For the terminal of this process. A table that a server makes for a command does not know the command's terminal. */
export const table = (rows: readonly Record<string, unknown>[]): string =>
  tableInBlocks(columnsOf(process.stdout))(rows);

/** Undefined of what is no terminal, and of a terminal that does not know its width and says 0. */
export const columnsOf = ({ columns }: NodeJS.WriteStream): number | undefined => columns || undefined;

interface Columns {
  isRight?(at: number): boolean;
  widths?: number[];
  columns?: number;
}

function inColumns(
  rows: string[][],
  { isRight = () => false, widths = [], columns = Number.POSITIVE_INFINITY }: Columns,
): string {
  for (const row of rows) {
    for (let at = 0; at < row.length; at++) {
      row[at] = visibleInLine(row[at]);
      widths[at] = Math.max(widths[at] ?? 0, row[at].length);
    }
  }
  const sides = widths.map((_, at) => isRight(at));
  const last = widths.length - 1;
  const lines = rows.map((row) => {
    let line = '';
    for (let at = 0; at < row.length; at++) {
      const padded = sides[at] ? row[at].padStart(widths[at]) : row[at].padEnd(widths[at]);
      if (at === last && line.length + '  '.length + row[at].length > columns) return folded(line, row[at], columns);
      line += at === 0 ? padded : `  ${padded}`;
    }
    return line.trimEnd();
  });
  return lines.join('\n');
}

/** A last cell that is too wide goes on below itself, or where there is little room below its row. */
function folded(line: string, cell: string, columns: number): string {
  const isRoomy = columns - line.length - '  '.length >= MIN_FOLDED_CHARS;
  const margin = isRoomy ? line.length + '  '.length : FOLDED_MARGIN;
  const rest = `\n${' '.repeat(margin)}`;
  return `${isRoomy ? `${line}  ` : line.trimEnd() + rest}${wrap(cell, columns - margin).join(rest)}`;
}

/** Breaks between words. A word longer than a line, such as a path, gets a line of its own. */
export const wrap = (text: string, width: number): string[] =>
  (text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, 'g')) ?? []).map((line) => line.trimEnd());

/** `bannedUntil` → `banned until` */
const spaced = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function textOf(value: unknown): string {
  if (typeof value === 'string') return when(value); // asked first: a list has millions of them
  if (value === null || (Array.isArray(value) && value.length === 0)) return 'none';
  if (typeof value === 'number') return count(value);
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  if (typeof value !== 'object') return String(value);
  const words = ([name, member]: [string, unknown]) => `${spaced(name)} ${textOf(member)}`;
  return Object.entries(value)
    .map((one) => (one[0] === 'resetsAt' && one[1] === null ? 'full' : words(one))) // no window is open
    .join(', ');
}

/** `1 line`, `1,234 lines`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** 2026-01-31T12:00:00.000Z → 2026-01-31 12:00:00 UTC; other texts stay as they are. */
export const when = (text: string): string =>
  text.length >= MIN_MOMENT_CHARS && /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d+Z$/.test(text)
    ? `${text.slice(0, 10)} ${text.slice(11, 19)} UTC`
    : text;

/** Shorter than the terminal is wide: a line that is broken there could not be drawn over, and each would stay. */
function progressLine(what: string, share: number): string {
  const columns = process.stderr.columns || DEFAULT_COLUMNS;
  const percent = ` ${Math.floor(share * 100)} %`;
  const bar = ` [${'#'.repeat(share * BAR_CHARS).padEnd(BAR_CHARS, '.')}]${percent}`;
  const isNarrow = columns < bar.length + MIN_WHAT_CHARS;
  const room = columns - 1 - (isNarrow ? percent : bar).length;
  const shown = what.length <= room ? what : `${what.slice(0, Math.max(0, room - 1))}…`;
  return `${shown}${isNarrow ? percent : bar}`.slice(0, columns - 1);
}

let isBarShown = false;

function clearBar(): void {
  if (isBarShown) process.stderr.write('\r\x1b[K');
  isBarShown = false;
}

/** Shows the progress of `work` by a bar on stderr, if that is a terminal that can draw over a line. */
export async function withProgress<R>(what: string, work: (at: Progress) => Promise<R>): Promise<R> {
  let drawnAt = 0;
  const at: Progress = (done, total) => {
    const isUnknown = total === 0; // a pipe has no size
    const isDrawable = process.stderr.isTTY === true && process.env.TERM !== 'dumb';
    if (isUnknown || !isDrawable || performance.now() - drawnAt < REDRAW_EVERY_MS) return;
    drawnAt = performance.now();
    isBarShown = true;
    process.stderr.write(`\r${progressLine(visibleInLine(what), Math.min(1, done / total))}\x1b[K`);
  };
  return work(at).finally(clearBar);
}
