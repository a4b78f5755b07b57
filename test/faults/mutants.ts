/**
 * Every fsync, fdatasync, truncation and test of a checksum in src/store, and other things on which a promise rests, each
 * with the change that takes it away, and the row of the matrix that must notice.
 */
export interface Mutant {
  file: string;
  text: string;
  instead: string;
  /** A row by number; 0: the check of the real disk's calls. */
  row: 0 | 2 | 3 | 10 | 12;
}

const CUT_BACK = 'await this.#disk.truncate(current.fd, current.length).catch(failing);';
const SYNC = 'await this.#disk.sync(current.fd).catch(failing);';

const LIST: [file: string, text: string, instead: string, row: Mutant['row']][] = [
  ['disk.ts', 'fs.fdatasync(fd, done)', 'done(null)', 0],
  ['disk.ts', 'await call((done) => fs.fsync(directory, done));', '', 0],
  ['disk.ts', 'await named(dir, (done) => done(null));', '', 0],
  ['disk.ts', 'fs.ftruncate(fd, length, done)', 'done(null)', 0],
  ['directory.ts', '.then(() => disk.sync(fd))', '', 10],
  ['directory.ts', 'isSealed(line) ?', 'true ?', 10],
  ['directory.ts', 'file >= mark.lowest', 'true', 12],
  ['rewrite.ts', '    await disk.sync(fd);', '', 10],
  ['format.ts', "line.toString('latin1', 0, SEAL_BYTES) ===", "'' !==", 2],
  ['journal.ts', CUT_BACK, '', 10],
  ['journal.ts', `${SYNC}\n      throw`, 'throw', 10],
  ['journal.ts', `${SYNC}\n    current.length`, 'current.length', 10],
  ['journal.ts', 'if (found?.isClosed) {', 'if (found) {', 10],
  ['journal.ts', 'await disk.truncate(fd, length);', '', 10],
  ['journal.ts', 'await disk.sync(fd);', '', 10],
  ['read.ts', 'if (!isSealed(bytes)) return', 'if (bytes.length === 0) return', 2],
  ['read.ts', 'if (isSealed(record)) {', 'if (false) {', 3],
  ['read.ts', 'isSealed(line.subarray(0, -1))', 'false', 2],
  ['tools.ts', 'state.keys.set(key.id, { ...key, revokedAt: Date.now() })', 'void key', 12],
  ['tools.ts', ' + LEAPS[name]', '', 12],
  ['tools.ts', 'Math.max(counters[name], begun[name])', '1 - LEAPS[name]', 12],
  ['journal.ts', 'await this.#disk.sync(to.fd);', '', 10],
  ['rewrite.ts', 'await dropOthers(disk, dir, header);', '', 10],
];

export const MUTANTS: Mutant[] = LIST.map(([name, text, instead, row]) => {
  return { file: `file/${name}`, text, instead, row };
});

/** What a mutant must stand for, wherever it is called in src/store. */
export const GUARDED = /\b(sync|truncate|ftruncate|fsync|fdatasync|isSealed)\(/g;

/** Where those words stand and nothing is called. */
export const DECLARATIONS = ['export function isSealed(line: Buffer): boolean {'];
