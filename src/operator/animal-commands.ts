/**
 * `petstore import` and `petstore export`. The file of an import is read twice. First every line is checked, and the
 * bad ones are told; only if all are good, or `--skip-bad` is given, are they read again and added, in parts that nobody
 * sees before the last one is in. So memory stays small, and a crash, a broken connection or a full disk half-way adds
 * nothing.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { data, json } from '../config.ts';
import { PET_STATUSES, type PetStatus } from '../store/model.ts';
import { readLine } from './animals.ts';
import { command } from './arguments.ts';
import { CommandError, EXIT } from './exit.ts';
import { linesOf } from './lines.ts';
import { flag, oneOf, optional, path, placed, type Values } from './options.ts';
import { count, print, printed, told } from './output.ts';
import { ANIMALS, type Progress, showProgress, withProgress } from './progress.ts';
import { type Operator, reach } from './reach.ts';
import { PART_MAX_ANIMALS, PART_MAX_CHARACTERS } from './transfer.ts';

const LINE_MAX_BYTES = 65_536;
const READ_BYTES = 262_144;
const BLANKS = Buffer.from(' \t\r');

const options = {
  file: placed(path, 'FILE', 'the file to read'),
  skipBad: flag('add the good lines even if others are bad'),
  data,
  json,
};

export const IMPORT = command({
  name: 'import',
  does: 'add animals from a file of JSON lines: all of them or none',
  more: `A line is {"name","categoryId","status"?}. An "id", as export writes it, is let pass; a new one is given. \
Bad lines are told on stderr, by number and reason; with --skip-bad and --json, in the JSON.`,
  options,
  run: importAnimals,
});

async function importAnimals(values: Values<typeof options>): Promise<void> {
  const file = await openRegular(values.file);
  try {
    const { good, bad } = await check(file, values);
    if (bad > 0 && !values.skipBad) {
      const nothing = `${values.file}: nothing was added, for ${count(bad)} bad lines`;
      throw new CommandError(EXIT.failed, `${nothing}; with --skip-bad the ${count(good)} good lines are`);
    }
    const first = good === 0 ? null : await reach(values.data, (operator) => add(operator, file, good), true);
    if (values.json) await printDone({ added: good, firstId: first, skipped: bad }, file);
    else {
      const ids = first === null ? '' : `, ids ${first} to ${first + good - 1}`;
      await print(`${count(good)} animals added${ids}; ${count(bad)} lines skipped`);
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
async function check(file: FileHandle, { file: path, skipBad, json }: Values<typeof options>) {
  const progress = showProgress(`checking ${path}`);
  const isTold = !(skipBad && json); // else in the JSON at the end
  let good = 0;
  let bad = 0;
  for await (const { number, fault } of linesIn(file, progress)) {
    if (fault === undefined) {
      good++;
      continue;
    }
    bad++;
    progress.end();
    if (isTold) await told(`line ${number}: ${fault}\n`);
  }
  return { good, bad };
}

/** One JSON value whose `badLines`, for the same reason, are read once more rather than kept. */
async function printDone(done: { added: number; firstId: number | null; skipped: number }, file: FileHandle) {
  if (done.skipped === 0) return print(JSON.stringify({ ...done, badLines: [] }, null, 2));
  await printed(`${JSON.stringify(done, null, 2).slice(0, -2)},\n  "badLines": [`);
  let separator = '\n    ';
  for await (const { number, fault } of linesIn(file)) {
    if (fault === undefined) continue;
    await printed(separator + JSON.stringify({ line: number, reason: fault }));
    separator = ',\n    ';
  }
  return print('\n  ]\n}');
}

/** Gives the id of the first. */
async function add(operator: Operator, file: FileHandle, expected: number): Promise<number> {
  const { import: name } = await operator.call('beginImport', {});
  const count = await addParts(operator, file, name);
  if (count !== expected) {
    throw new CommandError(EXIT.failed, 'the file changed while it was read; nothing was added');
  }
  return (await operator.call('endImport', { import: name, count })).first;
}

async function addParts(operator: Operator, file: FileHandle, name: string): Promise<number> {
  let lines: string[] = [];
  let characters = 0;
  let count = 0;
  const send = async () => {
    await operator.call('importPart', { import: name, lines });
    count += lines.length;
    lines = [];
    characters = 0;
  };
  for await (const { line, fault } of linesIn(file, showProgress('adding'))) {
    if (line === undefined || fault !== undefined) continue;
    lines.push(line.toString());
    characters += line.length;
    if (lines.length === PART_MAX_ANIMALS || characters >= PART_MAX_CHARACTERS) await send();
  }
  if (lines.length > 0) await send();
  return count;
}

/** Every line that is not blank, and what is wrong with it, if anything is. */
async function* linesIn(file: FileHandle, progress?: Progress) {
  const { size } = await file.stat();
  const stream = file.createReadStream({ start: 0, autoClose: false, highWaterMark: READ_BYTES });
  let number = 0;
  try {
    for await (const line of linesOf(stream, LINE_MAX_BYTES)) {
      number++;
      progress?.at(stream.bytesRead, size);
      if (line?.every((byte) => BLANKS.includes(byte))) continue;
      const animal = line === undefined ? `is longer than ${LINE_MAX_BYTES} bytes` : readLine(line);
      yield { number, line, fault: typeof animal === 'string' ? animal : undefined };
    }
  } finally {
    progress?.end();
  }
}

const status = optional(oneOf(PET_STATUSES), 'STATUS', 'only animals that are available, pending or sold');

/** Page after page, so that memory stays small however many animals there are. */
export const EXPORT = command({
  name: 'export',
  does: 'print all animals as JSON lines',
  options: { status, data },
  run: ({ data, status }) =>
    reach(data, (operator) => withProgress('exporting', (at) => printAll(operator, status, at), ANIMALS)),
});

async function printAll(operator: Operator, status: PetStatus | undefined, at: Progress['at']): Promise<void> {
  for (let after = 0, more = true; more; ) {
    const part = await operator.call('exportPart', { after, status });
    await printed(part.lines);
    at(part.last, part.animals);
    after = part.last;
    more = part.more;
  }
}
