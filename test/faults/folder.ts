import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of its own, and what removes it. */
export function folder(): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'petstore-faults-'));
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) };
}
