/** Which program this is; and what it tells the operator: exit statuses, errors, results as text. */
import { fstatSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isSea } from 'node:sea';
import { DamagedError, InUseError, NoStoreError } from '../store/engine.ts';
import { type Failure, StoreError } from '../store/model.ts';
import { VersionError } from '../store/schema.ts';
import { formatNumber, shellWord, visible, visibleInLine, withoutKeys } from '../text.ts';

/** Put in by the build; from the source tree there is neither. */
declare const PETSTORE_VERSION: string | undefined;
declare const PETSTORE_COMMIT: string | undefined;

const ofTree = () => JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
export const VERSION: string = typeof PETSTORE_VERSION === 'string' ? PETSTORE_VERSION : ofTree();
export const COMMIT = typeof PETSTORE_COMMIT === 'string' ? PETSTORE_COMMIT : 'source tree';
export const RUNTIME = `Node ${process.version}, ${process.platform} ${process.arch}`;

/** What runs this program again in the same folder: every command that is printed begins with it. */
export const PROGRAM = isSea() ? shellWord(process.argv0) : typed(process.argv[1] ?? '');

/** A script without an extension is a link that npm made, in the PATH. */
function typed(script: string): string {
  if (script.endsWith('.ts')) return 'npm run petstore --';
  return path.extname(script) === '' ? 'petstore' : `node ${shellWord(path.relative('', script))}`;
}

export const ENDING_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
export const EXIT = { done: 0, failed: 1, usage: 2, damaged: 3, inUse: 4 } as const;

/** Ends the program with a message and an exit status. A plain Error ends it with status 1. */
export class CommandError extends Error {
  readonly exit: number;

  constructor(exit: number, message: string) {
    super(message);
    this.exit = exit;
  }
}

/** What is wrong with what was typed, or with the parameters of a call. */
export const usage = (message: string) => new CommandError(EXIT.usage, message);

/** The error for the operator; undefined: a bug. `subject`: the store or file to name if the error names none. */
export function asCommandError(error: unknown, subject: string): CommandError | undefined {
  if (error instanceof CommandError) return error;
  const { message, path: place = subject, constructor: kind } = error as NodeJS.ErrnoException;
  const failed = (text: string, exit: number = EXIT.failed) => new CommandError(exit, text);
  if (error instanceof DamagedError) return failed(message, EXIT.damaged);
  if (error instanceof StoreError) return failed(`${message}; ${OUTCOMES[error.failure] ?? 'nothing was changed'}`);
  if (error instanceof VersionError) return failed(message);
  if (error instanceof InUseError) {
    return failed(`${message}: end that process, or name another directory with --data`, EXIT.inUse);
  }
  if (error instanceof NoStoreError) return failed(`${message}: name its directory with --data`);
  const reason = reasonOf(error as Error);
  return kind === Error ? failed(reason === message ? message : `${place}: ${reason}`) : undefined;
}

const OUTCOMES: { readonly [F in Failure]?: string } = {
  unknown: 'it is unknown whether the change was made: look before you repeat it',
  full: 'nothing was changed: make room, and type it again',
  bound: 'nothing was changed: make room, and type it again',
};

/** `permission denied` for the system's `EACCES: permission denied, open 'data/LOCK'`; else the message itself. */
export const reasonOf = ({ message }: Error): string => /^E[A-Z\d]+: (.+?), \w+/.exec(message)?.[1] ?? message;

/** A result that comes in pieces. */
export type Body = AsyncIterable<string | Uint8Array>;
export const isBody = (result: unknown): result is Body => Symbol.asyncIterator in Object(result);

const STDOUT = 1;

/** What `print` throws where its reader has gone away. */
export const UNREAD = new CommandError(EXIT.failed, 'nobody read the result');

/** Prints what the caller has made safe for a terminal. */
export async function print(chunk: string | Uint8Array): Promise<void> {
  try {
    // To a file, `process.stdout` of Node 20 writes once: on a disk that is nearly full the rest would be lost, unnoticed.
    if (fstatSync(STDOUT).isFile()) return writeFileSync(STDOUT, chunk);
    await new Promise<void>((resolve, reject) => {
      process.stdout.write(chunk, (error) => (error ? reject(error) : resolve()));
    });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw code === 'EPIPE' ? UNREAD : new CommandError(EXIT.failed, `standard output: ${message}`);
  }
}

export const printLine = (text: string): Promise<void> => print(`${visible(text)}\n`);

/** A line on stderr. It shows no key, wherever that was typed. */
export const note = (text: string): void => void process.stderr.write(`${withoutKeys(visible(text))}\n`);

/** Prints what a command came to: a text as it is, a body as it comes. */
export async function printResult(result: unknown, isJson = false): Promise<void> {
  if (isBody(result)) for await (const chunk of result) await print(chunk);
  else if (result !== undefined) await printLine(typeof result === 'string' ? result : inText(result, isJson));
}

/** A result as JSON, or as people read it: its members under each other; a new key alone on the last line. */
export function inText(result: unknown, isJson: boolean): string {
  if (isJson) return JSON.stringify(result, null, 2);
  const { key, ...about } = Object(result);
  const facts = inColumns(Object.entries(about).map(([name, value]) => [spaced(name), textOf(value)]));
  return key === undefined ? facts : `${facts}\nThe key, which is shown only once:\n${key}`;
}

/** Rows under each other. */
export function inColumns(rows: string[][]): string {
  const shown = rows.map((row) => row.map(visibleInLine));
  const widths = (shown[0] ?? []).map((_, i) => shown.reduce((width, row) => Math.max(width, row[i].length), 0));
  const lineOf = (row: string[]) => row.map((cell, i) => cell.padEnd(widths[i])).join('  ');
  return shown.map((row) => lineOf(row).trimEnd()).join('\n');
}

/** `bannedUntil` → `banned until` */
const spaced = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function textOf(value: unknown): string {
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value !== 'object') return String(value);
  const member = ([name, one]: [string, unknown]) => `${spaced(name)} ${textOf(one)}`;
  const parts = Array.isArray(value) ? value.map(textOf) : Object.entries(value ?? {}).map(member);
  return parts.join(', ') || 'none';
}

/** `1 line`, `1,234 lines`. */
export const countOf = (number: number, one: string): string =>
  `${formatNumber(number)} ${number === 1 ? one : `${one}s`}`;
