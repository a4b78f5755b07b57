/** Numbers as text, which every reply needs, and the ids of requests. */
import { randomBytes } from 'node:crypto';

const SMALL = Array.from({ length: 1_000 }, (_, n) => String(n));
const PADDED = SMALL.map((digits) => digits.padStart(3, '0'));
const IDS_PER_BLOCK = 10_000;

/**
 * The decimal digits of a whole number from 0 on. `String(n)` gives the same, but V8 caches its results: if every
 * number is new, the cached strings only fill the heap, and collecting them costs more than making them.
 */
export function digits(n: number): string {
  if (n < 1_000) return SMALL[n];
  const thousands = Math.floor(n / 1_000);
  return digits(thousands) + PADDED[n - thousands * 1_000];
}

/** A whole number for people: `100,000`. */
export function count(number: number): string {
  if (!Number.isSafeInteger(number) || number < 0) return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
  if (number < 1_000) return SMALL[number];
  const thousands = Math.floor(number / 1_000);
  return `${count(thousands)},${PADDED[number - thousands * 1_000]}`;
}

const DAY_MS = 86_400_000;
const MAX_DAYS = 4_096;
const days = new Map<number, string>();

/** The same text as `toISOString` of a Date, but faster: the date of each day is cached. */
export function isoTime(unix: number): string {
  const ms = Math.trunc(unix);
  const day = Math.floor(ms / DAY_MS);
  let date = days.get(day);
  if (date === undefined) {
    date = new Date(day * DAY_MS).toISOString().replace(/T.*$/, 'T');
    if (days.size >= MAX_DAYS) days.clear();
    days.set(day, date);
  }
  const ofDay = ms - day * DAY_MS;
  const seconds = Math.floor(ofDay / 1_000);
  const minutes = Math.floor(seconds / 60);
  const [hour, minute] = [twoDigits(Math.floor(minutes / 60)), twoDigits(minutes % 60)];
  return `${date}${hour}:${minute}:${twoDigits(seconds % 60)}.${PADDED[ofDay % 1_000]}Z`;
}

const twoDigits = (number: number): string => PADDED[number].slice(1);

/** Caches the text of the newest numbers: `make` is called only if the numbers differ from those before. */
export function newest(make: (a: number, b: number) => string): (a: number, b?: number) => string {
  let [lastA, lastB, text] = [Number.NaN, Number.NaN, ''];
  return (a, b = 0) => {
    if (a !== lastA || b !== lastB) [lastA, lastB, text] = [a, b, make(a, b)];
    return text;
  };
}

/**
 * Unique ids of requests: 48 bits, then a count. The bits begin at random, and grow by 1 every ten thousand ids.
 * Twelve characters at most: V8 keeps a longer concatenation as a tree of its parts (a rope), which node:http would
 * have to flatten for every reply.
 */
export function requestIds(): () => string {
  const bits = randomBytes(6);
  let [block, given] = ['', IDS_PER_BLOCK];
  return () => {
    if (given === IDS_PER_BLOCK) {
      bits.writeUIntBE((bits.readUIntBE(0, 6) + 1) % 2 ** 48, 0, 6);
      [block, given] = [bits.toString('base64url'), 0];
    }
    return block + digits(given++);
  };
}
