/** Text within other text, written so that it can be nothing but itself. */

/** A word as it is typed in a shell. */
export const shellWord = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text in HTML or XML, between elements or as the value of an attribute. */
export const markup = (text: string): string => text.replace(/[&<>"]/g, (character) => ENTITIES[character]);

const MAX_EXCERPT_CHARS = 40;

/** In a message: the beginning of what somebody sent, quoted, and with nothing in it that does not show. */
export function excerpt(text: string): string {
  const characters = Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARS + 2));
  const shown = characters.slice(0, MAX_EXCERPT_CHARS).join('');
  const visible = shown.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, (one) =>
    one === '"' || one === '\\' ? `\\${one}` : `\\u{${one.codePointAt(0)!.toString(16)}}`,
  );
  return `"${visible}"${characters.length > MAX_EXCERPT_CHARS ? '…' : ''}`;
}

/** What was typed, as it may be shown: nothing of the address of a database, of any other no user and password. */
export const withoutSecrets = (text: string): string =>
  text.replace(/(postgres(?:ql)?:\/\/).+/s, '$1…').replace(/\/\/.*@/s, '//');
