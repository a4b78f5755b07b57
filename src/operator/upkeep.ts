/** What the process that has the store does for a backup or a check by another, and compaction. */
import { readdirSync, statSync } from 'node:fs';
import type { Files } from '../store/recovery.ts';
import type { Context } from './context.ts';

/** The files stay as they are until whoever asked hangs up. */
export function pinFiles({ store, unfinished }: Context): Files {
  unfinished.get('pin')?.();
  const { snapshot, last, release } = store.pin();
  unfinished.set('pin', async () => release());
  return { snapshot, last };
}

export async function compactStore({ store, dir }: Context): Promise<{ bytesBefore: number; bytesAfter: number }> {
  const bytesBefore = bytesOf(dir);
  await store.compact();
  return { bytesBefore, bytesAfter: bytesOf(dir) };
}

function bytesOf(dir: string): number {
  const names = readdirSync(dir).filter((name) => name.endsWith('.jsonl'));
  return names.reduce((sum, name) => sum + (statSync(`${dir}/${name}`, { throwIfNoEntry: false })?.size ?? 0), 0);
}
