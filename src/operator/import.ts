/**
 * `petstore import`: the file is read twice. First every line is checked, and the bad ones are told; only if all are
 * good, or `--skip-bad` is given, are they read again and added, in parts that nobody sees before the last one is in.
 * So memory stays small, and a crash, a broken connection or a full disk half-way adds nothing.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { IMPORT } from '../config.ts';
import { readJson } from '../json/reader.ts';
import { type NewAnimal, readAnimal } from './animals.ts';
import { CommandError, EXIT } from './exit.ts';
import type { Values } from './options.ts';
import { count, print, printed, printJson } from './output.ts';
import { Progress } from './progress.ts';
import { type Operator, reach } from './reach.ts';
import { type AnimalText, PART_MAX_ANIMALS, PART_MAX_CHARACTERS } from './transfer.ts';

const LINE_MAX_BYTES = 65_536;
const READ_BYTES = 262_144;

interface Line {
  number: number;
  animal: NewAnimal | string;
}

interface Checked {
  good: number;
  bad: number;
}

type ImportValues = Values<typeof IMPORT.options>;

export async function importAnimals(values: ImportValues): Promise<void> {
  const file = await openRegular(values.file);
  try {
    const { good, bad } = await check(file, values);
    if (bad > 0 && !values.skipBad) throw refusal(values.file, good, bad);
    const first = good === 0 ? null : await add(values.data, file, good);
    if (values.json) await printDone({ added: good, firstId: first, skipped: bad }, file);
    else {
      const ids = first === null ? '' : `, ids ${first} to ${first + good - 1}`;
      print(`${count(good)} animals added${ids}; ${count(bad)} lines skipped`);
    }
  } finally {
    await file.close();
  }
}

async function openRegular(path: string): Promise<FileHandle> {
  const fail = (why: string) => new CommandError(EXIT.failed, `${path}: ${why}`);
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error) => {
    throw fail(error.message);
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw fail('is no regular file; an import reads it twice');
}

/** Bad lines are told as they are met, since there may be more than memory holds. */
async function check(file: FileHandle, { file: path, skipBad, json }: ImportValues): Promise<Checked> {
  const progress = new Progress(`checking ${path}`);
  const isTold = !(skipBad && json); // else in the JSON at the end
  const checked: Checked = { good: 0, bad: 0 };
  for await (const { number, animal } of linesOf(file, progress)) {
    if (typeof animal !== 'string') checked.good++;
    else {
      checked.bad++;
      progress.end();
      if (isTold) await printed(process.stderr, `line ${number}: ${animal}\n`);
    }
  }
  return checked;
}

/** One JSON value whose `badLines`, for the same reason, are read once more rather than kept. */
async function printDone(done: { added: number; firstId: number | null; skipped: number }, file: FileHandle) {
  if (done.skipped === 0) return printJson({ ...done, badLines: [] });
  await printed(process.stdout, `${JSON.stringify(done, null, 2).slice(0, -2)},\n  "badLines": [`);
  let separator = '\n    ';
  for await (const { number, animal } of linesOf(file)) {
    if (typeof animal !== 'string') continue;
    await printed(process.stdout, separator + JSON.stringify({ line: number, reason: animal }));
    separator = ',\n    ';
  }
  print('\n  ]\n}');
}

async function add(dir: string, file: FileHandle, expected: number): Promise<number> {
  const operator = await reach(dir, true);
  try {
    const { first } = await operator.call('beginImport', { count: expected });
    const added = await addParts(operator, file, first);
    const keep = added === expected;
    await operator.call('endImport', { first, keep });
    if (!keep) throw new CommandError(EXIT.failed, 'the file changed while it was read; nothing was added');
    return first;
  } finally {
    await operator.close();
  }
}

async function addParts(operator: Operator, file: FileHandle, first: number): Promise<number> {
  let part: AnimalText[] = [];
  let characters = 0;
  let next = first;
  const send = async () => {
    await operator.call('importPart', { first, from: next, animals: part });
    next += part.length;
    part = [];
    characters = 0;
  };
  for await (const { animal } of linesOf(file, new Progress('adding'))) {
    if (typeof animal === 'string') continue;
    part.push({ ...animal, categoryId: String(animal.categoryId) });
    characters += animal.name.length;
    if (part.length === PART_MAX_ANIMALS || characters >= PART_MAX_CHARACTERS) await send();
  }
  if (part.length > 0) await send();
  return next - first;
}

/** Every line that is not blank. A line beyond the limit is skipped over without being kept. */
async function* linesOf(file: FileHandle, progress?: Progress): AsyncGenerator<Line> {
  const total = (await file.stat()).size;
  let number = 0;
  try {
    for await (const line of rawLines(file, (done) => progress?.at(done, total))) {
      number++;
      if (line === undefined) yield { number, animal: `is longer than ${LINE_MAX_BYTES} bytes` };
      else if (!isBlank(line)) yield { number, animal: parse(line) };
    }
  } finally {
    progress?.end();
  }
}

async function* rawLines(file: FileHandle, at: (done: number) => void): AsyncGenerator<Buffer | undefined> {
  const chunk = Buffer.allocUnsafe(READ_BYTES);
  const held = Buffer.allocUnsafe(LINE_MAX_BYTES);
  let length = 0;
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(chunk, 0, READ_BYTES, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    at(position);
    for (let start = 0; start < bytesRead; ) {
      const found = chunk.indexOf(10, start);
      const ends = found !== -1 && found < bytesRead;
      const end = ends ? found : bytesRead;
      if (length + end - start <= LINE_MAX_BYTES) chunk.copy(held, length, start, end);
      length += end - start;
      start = end + 1;
      if (!ends) break;
      yield length > LINE_MAX_BYTES ? undefined : held.subarray(0, length);
      length = 0;
    }
  }
  if (length > 0) yield length > LINE_MAX_BYTES ? undefined : held.subarray(0, length);
}

function parse(line: Buffer): NewAnimal | string {
  try {
    return readAnimal(readJson(line));
  } catch (error) {
    return (error as Error).message;
  }
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 32 || byte === 9 || byte === 13);
}

function refusal(path: string, good: number, bad: number): CommandError {
  const why = `nothing was added, for ${count(bad)} bad lines`;
  return new CommandError(EXIT.failed, `${path}: ${why}; with --skip-bad the ${count(good)} good lines are`);
}
