/**
 * Every fsync, fdatasync, fsync of a directory, truncation and test of a checksum in src/store, each with the change
 * that takes it away, and the row of the matrix that must notice.
 */
export interface Mutant {
  file: string;
  text: string;
  /** Which of several places with that text: 1 is the first. */
  nth?: number;
  instead: string;
  /** A row by number; 0: the check of the real disk's calls. */
  row: 0 | 2 | 3 | 10;
}

export const MUTANTS: Mutant[] = [
  { file: 'disk.ts', text: 'fs.fdatasync(fd, done)', instead: 'done(null)', row: 0 },
  { file: 'disk.ts', text: 'fs.fsync(fd, done)', instead: 'done(null)', row: 0 },
  { file: 'disk.ts', text: 'fs.ftruncate(fd, length, done)', instead: 'done(null)', row: 0 },
  { file: 'disk.ts', text: 'await realDisk.syncDirectory(dirname(path));', instead: ';', row: 0 },
  { file: 'log.ts', text: '      await disk.sync(fd);', instead: '', row: 10 },
  { file: 'log.ts', text: '      await disk.syncDirectory(dir);', instead: '', row: 10 },
  { file: 'log.ts', text: '    await this.#sync();\n    this.#length +=', instead: '    this.#length +=', row: 10 },
  { file: 'log.ts', text: 'await this.#disk.truncate(this.#fd, this.#length);', instead: '', row: 10 },
  { file: 'log.ts', text: '    await this.#sync();\n  }', instead: '  }', row: 10 },
  { file: 'log.ts', text: 'await this.#disk.sync(this.#fd);', instead: '', row: 10 },
  { file: 'generation.ts', text: 'await disk.syncDirectory(dirname(path));', instead: '', row: 10 },
  { file: 'generation.ts', text: 'await disk.truncate(fd, found.length);', instead: '', row: 10 },
  { file: 'generation.ts', text: 'await disk.sync(fd);', instead: '', row: 10 },
  { file: 'snapshot.ts', text: 'await disk.sync(fd);', instead: '', row: 10 },
  {
    file: 'read-snapshot.ts',
    text: 'isWhole || !isSealed(bytes, start, end)) throw',
    nth: 1,
    instead: 'isWhole) throw',
    row: 2,
  },
  {
    file: 'read-snapshot.ts',
    text: 'isWhole || !isSealed(bytes, start, end)) throw',
    nth: 2,
    instead: 'isWhole) throw',
    row: 2,
  },
  {
    file: 'read-log.ts',
    text: 'if (!isSealed(line.bytes, line.start, line.end)) return',
    instead: 'if (false) return',
    row: 2,
  },
  { file: 'read-log.ts', text: 'line.isWhole && isSealed(line.bytes, line.start, line.end)', instead: 'false', row: 3 },
  { file: 'read-log.ts', text: ' && !isSealed(line.bytes, line.start, line.end - 1)', instead: '', row: 2 },
  {
    file: 'record.ts',
    text: 'return lead ===',
    instead: "return lead.startsWith('{') && '' !==",
    row: 2,
  },
  { file: 'repair.ts', text: ' || !isSealed(bytes, start, end)) continue', instead: ') continue', row: 10 },
  { file: 'repair.ts', text: '    await disk.sync(fd);', instead: '', row: 10 },
];

/** What a mutant must stand for, wherever it is called in src/store. */
export const GUARDED = /\b(sync|syncDirectory|truncate|ftruncate|fsync|fdatasync|isSealed)\(/g;

/** Where those words stand and nothing is called. */
export const DECLARATIONS = [
  'truncate(fd: number, length: number): Promise<void>;',
  'sync(fd: number): Promise<void>;',
  'syncDirectory(dir: string): Promise<void>;',
  'async syncDirectory(dir) {',
  'async #sync(): Promise<void> {',
  'export function isSealed(bytes: Buffer, start: number, end: number): boolean {',
];
