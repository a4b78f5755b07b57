import { basename } from 'node:path';
import { DamagedError, FormatError } from './damage.ts';
import { FORMAT_VERSION, type Header } from './record.ts';

/** `snapshot-000007.jsonl`, `log-000007.jsonl`: the digits only make `ls` sort. */
export function fileName(kind: Header['petstore'], generation: number): string {
  return `${kind}-${String(generation).padStart(6, '0')}.jsonl`;
}

/** The generation in the name of a snapshot or log; undefined for any other name. */
export function generationOf(kind: Header['petstore'], name: string): number | undefined {
  const match = /^(snapshot|log)-(\d{6,15})\.jsonl$/.exec(name);
  return match?.[1] === kind ? Number(match[2]) : undefined;
}

/** A first line whose checksum is right: what it says, when it belongs to this file. */
export function readHeader(
  path: string,
  line: string,
  kind: Header['petstore'],
): Header & { seq?: number; batch?: number } {
  const header = JSON.parse(line);
  if (header.petstore !== kind) throw new DamagedError(path, 0, `this is no ${kind} of a petstore`);
  if (header.version !== FORMAT_VERSION) {
    const told = `format version ${header.version}; this program reads version ${FORMAT_VERSION}`;
    throw new FormatError(`${path} has ${told}. Nothing was changed.`);
  }
  const named = generationOf(kind, basename(path).replace(/\.tmp$/, ''));
  if (named !== undefined && named !== header.generation) {
    throw new DamagedError(path, 0, `the file says it is generation ${header.generation}`);
  }
  return header;
}
