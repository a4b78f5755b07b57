import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/clock.ts';
import { openFileStore, restoreInto } from '../../src/store/file/store.ts';
import { storeContract } from './contract.ts';

const log = { info: () => {}, warn: () => {}, error: () => {} };
const root = mkdtempSync(join(tmpdir(), 'petstore-store-'));
process.on('exit', () => rmSync(root, { recursive: true, force: true }));
let places = 0;

storeContract({
  name: 'a file',
  hasReplicas: false,
  newPlace() {
    const dir = join(root, `place-${++places}`);
    return {
      open: (options) => openFileStore(dir, { clock: systemClock, log, ...options }, { minCompactionBytes: 4_096 }),
      restore: (lines) => restoreInto(dir, lines),
    };
  },
});
