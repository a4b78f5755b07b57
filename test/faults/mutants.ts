/**
 * Every fsync, fdatasync, fsync of a directory, truncation and test of a checksum in src/store, each with the change
 * that takes it away, and the row of the matrix that must notice.
 */
export interface Mutant {
  file: string;
  text: string;
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
  {
    file: 'log.ts',
    text: 'await this.#disk.truncate(this.#fd, this.#length).catch((failure) => this.#fail(failure));',
    instead: '',
    row: 10,
  },
  { file: 'log.ts', text: '      await this.#sync();\n      throw', instead: '      throw', row: 10 },
  { file: 'log.ts', text: 'this.#disk.sync(this.#fd)', instead: 'Promise.resolve()', row: 10 },
  { file: 'generation.ts', text: 'await disk.syncDirectory(dirname(path));', instead: '', row: 10 },
  { file: 'generation.ts', text: 'await disk.truncate(fd, found.length);', instead: '', row: 10 },
  { file: 'generation.ts', text: 'await disk.sync(fd);', instead: '', row: 10 },
  { file: 'snapshot.ts', text: 'await disk.sync(fd);', instead: '', row: 10 },
  { file: 'record.ts', text: "line.toString('latin1', 0, SEAL_BYTES) ===", instead: "'' !==", row: 2 },
  { file: 'lines.ts', text: ' && isSealed(bytes)', instead: '', row: 2 },
  { file: 'read-snapshot.ts', text: '!line.isGood', instead: '!line.isWhole', row: 2 },
  { file: 'read-log.ts', text: 'if (!line.isGood) return', instead: 'if (!line.isWhole) return', row: 2 },
  { file: 'read-log.ts', text: '!line.isGood && crashLeft', instead: 'crashLeft', row: 3 },
  { file: 'read-log.ts', text: ' && !isSealed(line.bytes.subarray(0, -1))', instead: '', row: 2 },
  { file: 'read-log.ts', text: 'if (!isSealed(record)) return;', instead: 'return;', row: 3 },
  { file: 'repair.ts', text: 'if (!line.isGood) loss', instead: 'if (!line.isWhole) loss', row: 10 },
  { file: 'repair.ts', text: 'await disk.sync(fd);', instead: '', row: 10 },
];

/** What a mutant must stand for, wherever it is called or asked in src/store. */
export const GUARDED = /\b(sync|syncDirectory|truncate|ftruncate|fsync|fdatasync|isSealed)\(|\.isGood\b/g;

/** Where those words stand and nothing is called. */
export const DECLARATIONS = [
  'async syncDirectory(dir: string): Promise<void> {',
  '#sync(): Promise<void> {',
  'export function isSealed(line: Buffer): boolean {',
];
