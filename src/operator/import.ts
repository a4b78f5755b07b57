/**
 * `petstore import`. All lines are checked first, in the process of the command. Then the good ones are added batch by
 * batch, each under an idempotency record made of the input's digest and the batch's number: run again, the command
 * goes on where it ended, and adds nothing twice.
 */
import { createHash, randomUUID } from 'node:crypto';
import { appendFileSync, createReadStream, fstatSync, openSync, statSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Ahead, NewPet, Once } from '../store/model.ts';
import { readLine } from './animals.ts';
import { command } from './command.ts';
import type { Context, Io } from './context.ts';
import { CommandError, EXIT } from './exit.ts';
import { LINE_MAX_BYTES, linesOf } from './lines.ts';
import { flag, path, placed } from './options.ts';
import { count, counted, told } from './output.ts';
import { type At, withProgress } from './progress.ts';
import { json, place } from './settings.ts';

const READ_BYTES = 262_144;
const BLANK = /^[ \t\r]*$/;
/** Fields and nothing of JSON: the head of a table. */
const CSV = /^[^{}[\]:]+([,;\t])[^{}[\]:]*$/;
const EXAMPLE = 'import takes JSON lines such as {"name":"Rex","categoryId":1}';

/** What is added at once, while requests wait: a few milliseconds of work. */
const BATCH_MAX_ANIMALS = 500;
const BATCH_MAX_BYTES = 65_536;
/** So many lines are checked before others have a turn. */
export const TURN_LINES = 40;

interface Imported {
  added: number;
  /** What the same import had added before. */
  already: number;
  firstId: number | null;
  lastId: number | null;
}

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
    json,
  },
  makes: true,
  unsure: 'run the command again: it completes the import, and adds nothing twice',
  call: importAnimals,
  run: async ({ file, skipBad, json }, ask) => {
    const badLines: { line: number; reason: string }[] = [];
    const onBad = async (line: number, reason: string) => {
      if (skipBad && json) badLines.push({ line, reason });
      else await told(`line ${line}: ${reason}\n`);
    };
    const { good, bad, chunks } = await withProgress(`checking ${file}`, (at) => check(file, onBad, at));
    if (bad > 0 && !skipBad) {
      const rest = good === 0 ? '' : `. Use --skip-bad to import the other ${good === 1 ? 'one' : count(good)}`;
      throw new CommandError(EXIT.failed, `Nothing imported: ${counted(bad, 'bad line')}${rest}`);
    }
    const imported = await withProgress('import', (at) => ask({ input: chunks(at) }));
    return { ...imported, skipped: bad, badLines };
  },
  words: ({ added, already, firstId, lastId, skipped }) => {
    const ids = firstId === lastId ? `id ${firstId}` : `ids ${firstId} to ${lastId}`;
    const before = already === 0 ? '' : `; ${count(already)} of this input had been imported before`;
    const bad = skipped === 0 ? '' : `; ${counted(skipped, 'line')} skipped`;
    return `${counted(added, 'animal')} imported${firstId === null ? '' : `, ${ids}`}${before}${bad}`;
  },
});

/** The good lines wait in a file that has no name any more: whatever happens, nothing of it stays behind. */
async function check(file: string, onBad: (line: number, reason: string) => Promise<void>, at: At) {
  const found = file === '-' ? undefined : statSync(file);
  if (found?.isDirectory()) throw new CommandError(EXIT.failed, `${file} is a directory`);
  const size = found?.size ?? 0;
  const stream = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: READ_BYTES });
  const hash = createHash('sha256');
  async function* hashed(): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const chunk of stream) {
      hash.update(chunk);
      at((bytes += chunk.length), size);
      yield chunk;
    }
  }
  const spool = openNameless();
  let [good, bad, number, waiting] = [0, 0, 0, ''];
  for await (const line of linesOf(hashed(), LINE_MAX_BYTES)) {
    number++;
    const animal = line === undefined ? `longer than ${LINE_MAX_BYTES} bytes` : readLine(line);
    const text = line?.toString() ?? '';
    if (typeof animal !== 'string') {
      good++;
      waiting += `${text}\n`;
      if (waiting.length < READ_BYTES) continue;
      append(spool, waiting);
      waiting = '';
    } else if (line === undefined || !BLANK.test(text)) {
      if (number === 1 && CSV.test(text)) throw new CommandError(EXIT.failed, `${file} looks like CSV; ${EXAMPLE}`);
      bad++;
      await onBad(number, line === undefined || /^\s*[{[]/.test(text) ? animal : `not JSON; ${EXAMPLE}`);
    }
  }
  append(spool, waiting);
  const head = JSON.stringify({ digest: hash.digest('hex'), count: good });
  /** For the call: a line with the digest of the input and the count, then the good lines. */
  async function* chunks(at: At): AsyncGenerator<Buffer> {
    yield Buffer.from(`${head}\n`);
    const lines = createReadStream('', { fd: spool, start: 0, highWaterMark: READ_BYTES });
    const { size } = fstatSync(spool);
    for await (const chunk of lines) {
      at(lines.bytesRead, size);
      yield chunk;
    }
  }
  return { good, bad, chunks };
}

/** It has no name to tell where there is no room: it lies on another disk than the store. */
function append(spool: number, text: string): void {
  try {
    appendFileSync(spool, text);
  } catch (error) {
    throw Object.assign(error as Error, { path: tmpdir() });
  }
}

function openNameless(): number {
  const name = `${tmpdir()}/petstore-import-${randomUUID()}`;
  const fd = openSync(name, 'wx+', 0o600);
  unlinkSync(name);
  return fd;
}

/** The first line tells the digest of the input and how many lines follow; each of those is an animal. */
export async function importAnimals(
  { engine: { store } }: Pick<Context, 'engine'>,
  _: unknown,
  { input }: Pick<Io, 'input'>,
): Promise<Imported> {
  const lines = input[Symbol.asyncIterator]();
  const { digest, count } = JSON.parse(String((await lines.next()).value)) as { digest: string; count: number };
  const done: Imported = { added: 0, already: 0, firstId: null, lastId: null };
  const add = async (pets: NewPet[], once: Once) => {
    const decided = await store.write((ahead: Ahead) => decideBatch(ahead, pets, once));
    const first = decided.op === 'again' ? decided.made.id : decided.first;
    done[decided.op === 'again' ? 'already' : 'added'] += pets.length;
    done.firstId ??= first;
    done.lastId = first + pets.length - 1;
  };
  let before = Promise.resolve(); // one batch is written while the next is read
  for (let batch = 0, taken = 0; taken < count; batch++) {
    const pets = await nextBatch(lines, count - taken).finally(() => before);
    before = add(pets, { caller: 'import', key: `${digest}:${batch}`, at: store.unix() });
    before.catch(() => {}); // it is waited for below, or at the next batch
    taken += pets.length;
  }
  await before;
  return done;
}

function decideBatch(ahead: Ahead, pets: NewPet[], once: Once) {
  const made = ahead.made('import', once);
  if (made === 'accepted') throw new CommandError(EXIT.failed, 'the same import is being done by another command');
  if (made !== undefined) return { op: 'again' as const, made };
  return { op: 'addPets' as const, first: ahead.nextPetId(), pets, once };
}

/** The same lines make the same batches, whenever they come. */
async function nextBatch(lines: AsyncIterator<Buffer | undefined>, count: number): Promise<NewPet[]> {
  const pets: NewPet[] = [];
  for (let bytes = 0; pets.length < Math.min(count, BATCH_MAX_ANIMALS) && bytes < BATCH_MAX_BYTES; ) {
    if (pets.length % TURN_LINES === 0) await new Promise(setImmediate);
    const { value: line } = await lines.next();
    const animal = line === undefined ? 'the input ended too soon' : readLine(line);
    if (typeof animal === 'string') throw new CommandError(EXIT.failed, animal);
    bytes += line.length;
    pets.push(animal);
  }
  return pets;
}
