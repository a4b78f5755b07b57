/** Text for people and for other programs: quoted, shortened, and without what must not be shown. */

/** Quotes a word for a shell. */
export const shellWord = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The most faults that one message names: more than an honest mistake causes. The others are only counted. */
export const MAX_FAULTS_NAMED = 20;

/** All faults of one thing, in one message. */
export function allFaults(faults: readonly string[]): string {
  const more = faults.length - MAX_FAULTS_NAMED;
  return faults.slice(0, MAX_FAULTS_NAMED).join('; ') + (more > 0 ? `; and ${more} more` : '');
}

const MAX_EXCERPT_CHARS = 40;

/** For a message: the beginning of a text that somebody sent, quoted, with invisible characters escaped. */
export function excerpt(text: string): string {
  const characters = Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARS + 2));
  const shown = characters.slice(0, MAX_EXCERPT_CHARS).join('');
  const visible = shown.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, (one) =>
    one === '"' || one === '\\' ? `\\${one}` : `\\u{${one.codePointAt(0)!.toString(16)}}`,
  );
  return `"${visible}"${characters.length > MAX_EXCERPT_CHARS ? '…' : ''}`;
}

const KEY = /(ps_(?:live|test)_)[0-9A-Za-z]{8,}/g;
export const HIDDEN = '[hidden]';

/** Hides keys, and also a key whose end is missing: its last characters can be computed from the others. */
export const withoutKeys = (text: string): string => text.replace(KEY, `$1${HIDDEN}`);

/**
 * The part of a word that may be shown: of a key its kind, of a web address all but what stands between the scheme and
 * the last `@`, such as a user and a password. Of any other URL, such as that of a database, the scheme alone.
 */
export function withoutSecrets(word: string): string {
  const text = withoutKeys(word);
  const scheme = text.indexOf('://');
  const shown = text.slice(0, scheme + '://'.length);
  if (scheme === -1) return text;
  return /https?:..$/i.test(shown)
    ? shown + text.slice(Math.max(text.lastIndexOf('@') + 1, shown.length))
    : `${shown}…`;
}

/** Control characters (C0 except tab and line feed, DEL, C1), direction marks, line separators. */
const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const escaped = (one: string) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Makes a text from outside safe for a terminal. JSON stays valid, and parses to the same values. */
export const visible = (text: string): string => text.replace(UNSEEN, escaped);

/** Like `visible`, but a tab and a line feed are escaped too. */
export const visibleInLine = (text: string): string => visible(text).replace(/[\t\n]/g, escaped);

/** A whole number for people: `100,000`. */
export const formatNumber = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
