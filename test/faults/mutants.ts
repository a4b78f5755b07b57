/**
 * Every fsync, fdatasync, fsync of a directory, truncation and test of a checksum in src/store, and other things on which
 * a promise rests, each with the change that takes it away, and the row of the matrix that must notice.
 */
export interface Mutant {
  file: string;
  text: string;
  instead: string;
  /** A row by number; 0: the check of the real disk's calls. */
  row: 0 | 2 | 3 | 10 | 12;
}

export const MUTANTS: Mutant[] = [
  { file: 'file/disk.ts', text: 'fs.fdatasync(fd, done)', instead: 'done(null)', row: 0 },
  { file: 'file/disk.ts', text: 'fs.fsync(fd, done)', instead: 'done(null)', row: 0 },
  { file: 'file/disk.ts', text: 'fs.ftruncate(fd, length, done)', instead: 'done(null)', row: 0 },
  {
    file: 'file/disk.ts',
    text: 'await realDisk.syncDirectory(fd).finally',
    instead: 'await Promise.resolve().finally',
    row: 0,
  },
  { file: 'file/backup.ts', text: 'await disk.syncDirectory(directory);', instead: '', row: 0 },
  { file: 'file/directory.ts', text: '    await disk.sync(fd);\n  } finally', instead: '  } finally', row: 10 },
  { file: 'file/directory.ts', text: 'await disk.sync(fd).finally(() => disk.close(fd));', instead: '', row: 10 },
  { file: 'file/directory.ts', text: 'isSealed(Buffer.from(sector))', instead: 'true', row: 10 },
  { file: 'file/directory.ts', text: 'file >= (mark?.lowest ?? 0)', instead: 'true', row: 12 },
  { file: 'file/format.ts', text: '    await disk.sync(fd);', instead: '', row: 10 },
  { file: 'file/format.ts', text: "line.toString('latin1', 0, SEAL_BYTES) ===", instead: "'' !==", row: 2 },
  { file: 'file/rewrite.ts', text: '  await disk.sync(to.fd);', instead: '', row: 10 },
  {
    file: 'file/journal.ts',
    text: 'await this.#disk.truncate(current.fd, current.length).catch(failing);',
    instead: '',
    row: 10,
  },
  {
    file: 'file/journal.ts',
    text: '      await this.#disk.sync(current.fd).catch(failing);\n      throw',
    instead: '      throw',
    row: 10,
  },
  {
    file: 'file/journal.ts',
    text: '    await this.#disk.sync(current.fd).catch(failing);\n    current.length',
    instead: '    current.length',
    row: 10,
  },
  { file: 'file/journal.ts', text: 'if (found?.isClosed) {', instead: 'if (found) {', row: 10 },
  { file: 'file/journal.ts', text: '      await this.#disk.truncate(fd, length);', instead: '', row: 10 },
  { file: 'file/journal.ts', text: '      await this.#disk.sync(fd);', instead: '', row: 10 },
  { file: 'file/read.ts', text: 'if (!isSealed(bytes)) return', instead: 'if (bytes.length === 0) return', row: 2 },
  {
    file: 'file/read.ts',
    text: 'if (isSealed(record) && batchOf(record)',
    instead: 'if (false && batchOf(record)',
    row: 3,
  },
  { file: 'file/read.ts', text: 'from && isSealed(bytes) &&', instead: 'from &&', row: 12 },
  {
    file: 'file/read.ts',
    text: 'feed === -1 && !isUnwritten && isSealed(line.subarray(0, -1))',
    instead: 'false',
    row: 2,
  },
  { file: 'file/repair.ts', text: 'if (!isSealed(bytes)) return', instead: 'if (bytes.length === 0) return', row: 12 },
  {
    file: 'file/repair.ts',
    text: 'state.keyTable.set(key.id, { ...key, revokedAt: now })',
    instead: 'void key',
    row: 12,
  },
  { file: 'file/repair.ts', text: 'Math.ceil(this.#unread / MIN_BYTES[kind])', instead: '0', row: 12 },
  { file: 'file/rewrite.ts', text: 'await disk.syncDirectory(directory);', instead: '', row: 10 },
  { file: 'file/rewrite.ts', text: 'await writeMark(disk, dir, { store, lowest: file });', instead: '', row: 10 },
];

/** What a mutant must stand for, wherever it is called in src/store. */
export const GUARDED = /\b(sync|syncDirectory|truncate|ftruncate|fsync|fdatasync|isSealed)\(/g;

/** Where those words stand and nothing is called. */
export const DECLARATIONS = ['export function isSealed(line: Buffer): boolean {'];
