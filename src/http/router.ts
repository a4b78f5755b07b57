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
  readonly #exact = new Map<string, Match<T>>();
  /** A list and no map: to compare the few there are is quicker than to hash the path's beginning. */
  readonly #prefixes: { prefix: string; value: T }[] = [];

  add(pattern: string, value: T): void {
    const brace = pattern.indexOf('{');
    if (brace === -1) this.#exact.set(pattern, { value, param: '' });
    else this.#prefixes.push({ prefix: pattern.slice(0, brace), value });
  }

  find(path: string): Match<T> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return exact;
    const cut = path.lastIndexOf('/') + 1;
    if (cut === path.length) return undefined;
    for (const { prefix, value } of this.#prefixes) {
      if (prefix.length === cut && path.startsWith(prefix)) return { value, param: path.slice(cut) };
    }
    return undefined;
  }
}
