/**
 * `petstore import`. All lines are checked first, in the process of the command; the good ones are kept there in their
 * shortest form. Then they are added batch by batch, each under an idempotency record made of the input's digest
 * and the batch's number: run again, the command goes on where it ended, and adds nothing twice.
 */
import { createHash } from 'node:crypto';
import { createReadStream, fstatSync, statSync } from 'node:fs';
import { count } from '../digits.ts';
import { visibleInLine } from '../quoting.ts';
import { petJson } from '../shop/pets.ts';
import { IMPORT_CALLER } from '../store/changes.ts';
import type { Progress } from '../store/file/read.ts';
import { type Ahead, type IdempotencyKey, type PetColumns, StoreError } from '../store/model.ts';
import { readAnimal, readAnimals } from './animals.ts';
import { type Context, command } from './command.ts';
import { CommandError, EXIT } from './exit.ts';
import { linesOf, MAX_INPUT_LINE_BYTES } from './lines.ts';
import { flag, json, ownBudget, path, place, placed } from './options.ts';
import { counted, told, withProgress } from './output.ts';
import type { Io } from './reach.ts';

const READ_BYTES = 262_144;
const BLANK = /^[ \t\r]*$/;
/** Fields without any JSON: the heading of a CSV file. */
const CSV = /^[^{}[\]:]+$/;
const SEPARATED = /.[,;\t]/;
const EXAMPLE = 'import takes JSON lines such as {"name":"Rex","categoryId":1}';
const AGAIN = 'run the command again: it completes the import, and adds nothing twice';

/** One batch, for which requests wait a few milliseconds. Written as a line it is within `MAX_INPUT_LINE_BYTES`. */
const MAX_BATCH_ANIMALS = 250;
const MAX_BATCH_CHARS = 16_384;

/** The digest of the input, and the number of the batch in it. The caller may be another program. */
const BATCH_NAME = /^\w+:\d+$/;
const NO_BATCH = `a line of an import must be the name of a batch, a blank and a JSON list of animals, in at most \
${MAX_INPUT_LINE_BYTES} bytes`;

export const IMPORT = command({
  name: 'import',
  does: 'add animals from a file of JSON lines, or from standard input',
  more: `A line is {"name","categoryId","status"?}; an "id", as export writes it, is ignored, and a new one is given. \
All lines are checked first; if one is bad, nothing is imported. An import that was interrupted is completed by the \
same command: for 24 hours the same input adds nothing twice.`,
  options: {
    file: placed(path, 'FILE', 'the file to read; - is standard input'),
    skipBad: flag('import the good lines even if others are bad'),
    ...place,
    ...ownBudget,
    json,
  },
  makes: true,
  leavesParts: true,
  call: addBatches,
  run: async ({ file, skipBad, json }, ask) => {
    const badLines: { line: number; reason: string }[] = [];
    const onBad = async (line: number, reason: string) => {
      if (skipBad && json) badLines.push({ line, reason });
      else await told(`line ${line}: ${visibleInLine(reason)}\n`);
    };
    const { good, bad, digest, batches } = await withProgress(`checking ${file}`, (at) => check(file, onBad, at));
    if (bad > 0 && !skipBad) {
      const rest = good === 0 ? '' : `. Use --skip-bad to import the other ${good === 1 ? 'one' : count(good)}`;
      throw new Error(`Nothing imported: ${counted(bad, 'bad line')}${rest}`);
    }
    const imported = await withProgress('import', (at) => ask({ input: named(batches, digest, at) }));
    return { ...imported, skipped: bad, badLines };
  },
  words: ({ added, already, firstId, lastId, skipped }) => {
    const ids = firstId === lastId ? `id ${firstId}` : `ids ${firstId} to ${lastId}`;
    const before = already === 0 ? '' : `; ${count(already)} of this input had been imported before`;
    const bad = skipped === 0 ? '' : `; ${counted(skipped, 'line')} skipped`;
    return `${counted(added, 'animal')} imported${firstId === null ? '' : `, ${ids}`}${before}${bad}`;
  },
});

/** The same lines always make the same digest and the same batches. */
async function check(file: string, onBad: (line: number, reason: string) => Promise<void>, at: Progress) {
  const found = file === '-' ? fstatSync(0) : statSync(file);
  if (found.isDirectory()) throw new Error(`${file} is a directory`);
  const stream = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: READ_BYTES });
  stream.once('error', (error: Error) => Object.assign(error, { path: file })); // the store has not failed
  const hash = createHash('sha256');
  const batches: Buffer[] = [];
  let [number, good, bad, batch, inBatch] = [0, 0, 0, '', 0];
  for await (const line of linesOf(stream, MAX_INPUT_LINE_BYTES)) {
    number++;
    hash.update(line ?? '').update('\n');
    at(stream.bytesRead, found.size);
    try {
      if (line === undefined) throw new Error(`longer than ${MAX_INPUT_LINE_BYTES} bytes`);
      const animal = readAnimal(line);
      batch += `${batch && ','}${petJson({ id: ++good, ...animal })}`;
      if (++inBatch < MAX_BATCH_ANIMALS && batch.length < MAX_BATCH_CHARS) continue;
      batches.push(Buffer.from(batch));
      [batch, inBatch] = ['', 0];
    } catch (error) {
      const text = line?.toString();
      if (text !== undefined && BLANK.test(text)) continue;
      if (number === 1 && text && CSV.test(text) && SEPARATED.test(text))
        throw new Error(`${file} looks like CSV; ${EXAMPLE}`);
      bad++;
      const isJson = text === undefined || /^\s*[{[]/.test(text);
      await onBad(number, isJson ? withoutLine((error as Error).message) : `not JSON; ${EXAMPLE}`);
    }
  }
  if (inBatch > 0) batches.push(Buffer.from(batch));
  return { good, bad, digest: hash.digest('hex'), batches };
}

/** A JSON error names its line and column; here the message begins with the line already. */
const withoutLine = (reason: string): string => reason.replace(/\(line 1, (column \d+)\)$/, '($1)');

/** The input of the call: one line a batch, with the batch's name in front. */
async function* named(batches: Buffer[], digest: string, at: Progress): AsyncGenerator<Buffer> {
  for (const [number, batch] of batches.entries()) {
    at(number, batches.length);
    yield Buffer.from(`${digest}:${number} [${batch}]\n`);
  }
}

/** One batch after the other: between two of them requests have their turn. */
async function addBatches({ engine: { store } }: Context, _: unknown, { input }: Io) {
  const done = { added: 0, already: 0, firstId: null as number | null, lastId: null as number | null };
  for await (const line of input) {
    await new Promise(setImmediate); // the batch before was applied in this turn
    const cut = line?.indexOf(' ') ?? -1;
    const key = line?.toString('latin1', 0, cut) ?? '';
    if (line === undefined || !BATCH_NAME.test(key)) throw new CommandError(EXIT.usage, NO_BATCH);
    const pets = readAnimals(line.subarray(cut));
    const once = { caller: IMPORT_CALLER, key, at: store.unix() };
    const decided = await store.write((ahead) => decideBatch(ahead, pets, once)).catch((error) => broken(error, done));
    const first = decided.op === 'again' ? decided.made.id : decided.first;
    done[decided.op === 'again' ? 'already' : 'added'] += pets.names.length;
    done.firstId ??= first;
    done.lastId = first + pets.names.length - 1;
  }
  return done;
}

/** A StoreError says that nothing was changed, but that is true of the last batch alone. */
function broken(error: Error, { added, already }: { added: number; already: number }): never {
  if (!(error instanceof StoreError) || added + already === 0) throw error;
  const sofar = `${counted(added + already, 'animal')} of this input imported so far`;
  throw new CommandError(EXIT.failed, `${error.message}; ${sofar}; when that is mended, ${AGAIN}`);
}

function decideBatch(ahead: Ahead, pets: PetColumns, once: IdempotencyKey) {
  const made = ahead.firstResult('import', once);
  if (made !== undefined) return { op: 'again' as const, made };
  return { op: 'pets' as const, first: ahead.counters.nextPetId, once, ...pets };
}
