/** The checksum first: only what is as it was written is worth understanding. */
import { crc32 } from 'node:zlib';
import type { FileRecord } from '../read-record.ts';

/** `{"crc":"1a2b3c4d",` */
const SEAL_BYTES = 18;

export function readRecord(line: Buffer): FileRecord | undefined {
  const crc = crc32(line.subarray(SEAL_BYTES)).toString(16).padStart(8, '0');
  // Compared as text: read as a number, "1A2B3C4D" would be as good.
  if (line.toString('latin1', 0, SEAL_BYTES) !== `{"crc":"${crc}",`) return undefined;
  const { crc: _, batch, n, last = false, ...operation } = JSON.parse(line.toString());
  if (operation.pet) operation.pet.categoryId = int64(operation.pet.categoryId);
  for (const pet of operation.pets ?? []) pet.categoryId = int64(pet.categoryId);
  if (operation.category) operation.category.id = int64(operation.category.id);
  for (const category of operation.categories ?? []) category.id = int64(category.id);
  return { batch, n, last, operation };
}

function int64(written: number | string): number | bigint {
  return typeof written === 'string' ? BigInt(written) : written;
}
