/**
 * Paths to values: exact text, or a prefix that ends in `/` followed by one last segment (`{name}` in the pattern).
 * No aliases: no trailing slashes, no case folding, no percent-decoding.
 */
export interface Match<T> {
  value: T;
  /** The text of the last segment where the pattern has a parameter, else empty. */
  param: string;
}

export class Router<T> {
  #exact = new Map<string, Match<T>>();
  #prefixes = new Map<string, T>();

  add(pattern: string, value: T): void {
    const brace = pattern.indexOf('{');
    if (brace === -1) this.#exact.set(pattern, { value, param: '' });
    else this.#prefixes.set(pattern.slice(0, brace), value);
  }

  find(path: string): Match<T> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return exact;
    const cut = path.lastIndexOf('/') + 1;
    const value = this.#prefixes.get(path.slice(0, cut));
    return value === undefined || cut === path.length ? undefined : { value, param: path.slice(cut) };
  }
}
