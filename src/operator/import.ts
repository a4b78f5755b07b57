/**
 * `petstore import`. All lines are checked first, in the process of the command. Then they are added batch by batch, each
 * with a row of its own in `replays`, named by the digest of the input and the number of the batch: an import that is run
 * again goes on where it ended, and adds nothing twice.
 */
import { createHash } from 'node:crypto';
import { fstatSync, statSync } from 'node:fs';
import { petJson } from '../shop/pets.ts';
import { count, visibleInLine } from '../text.ts';
import { readAnimal, readAnimals } from './animals.ts';
import type { Context } from './command.ts';
import { inputFrom, STANDARD } from './data.ts';
import { CommandError, EXIT } from './failures.ts';
import { counted, note, type Progress, withProgress } from './output.ts';

const MAX_LINE_BYTES = 65_536;
/** A batch ends with the animal that reaches this: requests wait a few milliseconds for one. */
const BATCH_CHARS = 16_384;
const LINE_FEED = 10;
const BLANK = /^[ \t\r]*$/;
const EXAMPLE = 'import takes JSON lines such as {"name":"Rex","categoryId":1}';
const AGAIN = 'run the command again: it completes the import, and adds nothing twice';

/** `animals`: a JSON list. */
export interface Batch {
  id: string;
  animals: string;
}

/** `isRepeated`: these were added before. */
export interface Added {
  firstId: number;
  animals: number;
  isRepeated: boolean;
}

export const isFirstBatch = ({ id }: Batch): boolean => id.endsWith(':0');

/** Adds one batch, on the open store. */
export function addBatch({ engine: { store } }: Context, batch: Batch): Promise<Added> {
  const pets = readAnimals(Buffer.from(batch.animals));
  const id = `import k0 ${batch.id}`;
  return store.write((tx) => {
    const before = tx.replays.get(id);
    if (before !== undefined) return { firstId: Number(before.body), animals: pets.length, isRepeated: true };
    const [firstId] = pets.map((pet) => tx.pets.add(pet).id);
    tx.replays.put({ id, keyId: 0, digest: '', status: 201, body: String(firstId), location: '', at: store.now() });
    return { firstId, animals: pets.length, isRepeated: false };
  });
}

interface Wanted {
  file: string;
  skipBad: boolean;
  json: boolean;
}

export async function importAnimals({ file, skipBad, json }: Wanted, add: (batch: Batch) => Promise<Added>) {
  const badLines: { line: number; reason: string }[] = [];
  const onBad = async (line: number, reason: string) => {
    if (skipBad && json) badLines.push({ line, reason });
    else await note(`line ${line}: ${visibleInLine(reason)}`);
  };
  const checked = await withProgress(`checking ${file}`, (progress) => check(file, onBad, progress));
  const { good, bad, digest, batches } = checked;
  if (bad > 0 && !skipBad) {
    const rest = good === 0 ? '' : `; --skip-bad imports the other ${good === 1 ? 'one' : count(good)}`;
    throw new Error(`nothing was imported: ${counted(bad, 'bad line')}${rest}`);
  }
  const done = { added: 0, already: 0, firstId: null as number | null, lastId: null as number | null };
  await withProgress('importing', async (progress) => {
    for (const [number, animals] of batches.entries()) {
      progress(number, batches.length);
      const added = await add({ id: `${digest}:${number}`, animals: `[${animals}]` }).catch((error) => {
        if (number === 0) throw error;
        const soFar = `${counted(done.added + done.already, 'animal')} of this input imported so far`;
        throw new CommandError(error.exit ?? EXIT.failed, `${error.message}; ${soFar}; ${AGAIN}`);
      });
      done[added.isRepeated ? 'already' : 'added'] += added.animals;
      done.firstId ??= added.firstId;
      done.lastId = added.firstId + added.animals - 1;
    }
  });
  return { ...done, skipped: bad, badLines };
}

export function importedInWords(result: Awaited<ReturnType<typeof importAnimals>>): string {
  const { added, already, firstId, lastId, skipped } = result;
  const ids = firstId === lastId ? `id ${firstId}` : `ids ${firstId} to ${lastId}`;
  const before = already === 0 ? '' : `; ${count(already)} of this input had been imported before`;
  const bad = skipped === 0 ? '' : `; ${counted(skipped, 'line')} skipped`;
  return `${counted(added, 'animal')} imported${firstId === null ? '' : `, ${ids}`}${before}${bad}`;
}

type OnBad = (line: number, reason: string) => Promise<void>;

/** The same lines always make the same digest and the same batches. */
async function check(file: string, onBad: OnBad, progress: Progress) {
  const found = file === STANDARD ? fstatSync(0) : statSync(file);
  if (found.isDirectory()) throw new Error(`${file} is a directory`);
  const stream = inputFrom(file);
  const hash = createHash('sha256');
  const batches: string[] = [];
  let [number, good, bad, batch] = [0, 0, 0, ''];
  for await (const line of linesOf(stream)) {
    number++;
    hash.update(line ?? '').update('\n');
    progress(stream.bytesRead, found.size);
    try {
      if (line === undefined) throw new Error(`longer than ${MAX_LINE_BYTES} bytes`);
      const animal = readAnimal(line);
      batch += `${batch && ','}${petJson({ id: ++good, ...animal })}`;
      if (batch.length < BATCH_CHARS) continue;
      batches.push(batch);
      batch = '';
    } catch (error) {
      const text = line?.toString();
      if (text !== undefined && BLANK.test(text)) continue;
      bad++;
      const isJson = text === undefined || /^\s*[{[]/.test(text);
      await onBad(number, isJson ? withoutLine((error as Error).message) : `not JSON; ${EXAMPLE}`);
    }
  }
  if (batch !== '') batches.push(batch);
  return { good, bad, digest: hash.digest('hex'), batches };
}

/** A JSON error names its line and column; here the message begins with the line already. */
const withoutLine = (reason: string): string => reason.replace(/\(line 1, (column \d+)\)$/, '($1)');

/** Each line without its line feed; the last need not have one. A line that is too long is undefined, not buffered. */
async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(LINE_FEED, start);
      const end = found === -1 ? chunk.length : found;
      const wasTooLong = bytes > MAX_LINE_BYTES;
      bytes += end - start;
      if (bytes <= MAX_LINE_BYTES) parts.push(chunk.subarray(start, end));
      else if (!wasTooLong) yield undefined; // at once: its end may never come
      start = end + 1;
      if (found === -1) break;
      if (bytes <= MAX_LINE_BYTES) yield Buffer.concat(parts);
      [parts, bytes] = [[], 0];
    }
  }
  if (bytes > 0 && bytes <= MAX_LINE_BYTES) yield Buffer.concat(parts);
}
