/** 32 to the power of this is more than there are ids. */
const LEVELS = 7;

/**
 * A set of small non-negative integers that finds the next member after a given one in a handful of steps, however
 * sparse it is. Level 0 has a bit for every number; a bit of level n + 1 says whether a word of level n has any.
 */
export class Bits {
  readonly #levels = Array.from({ length: LEVELS }, () => new Uint32Array(1));

  has(i: number): boolean {
    const words = this.#levels[0];
    return i < words.length * 32 && (words[i >>> 5] & (1 << (i & 31))) !== 0;
  }

  add(i: number): void {
    for (let level = 0; level < LEVELS; level++) {
      const word = i >>> 5;
      const words = this.#reach(level, word);
      const before = words[word];
      words[word] = before | (1 << (i & 31));
      if (before !== 0) return;
      i = word;
    }
  }

  delete(i: number): void {
    for (let level = 0; level < LEVELS; level++) {
      const words = this.#levels[level];
      const word = i >>> 5;
      if (word >= words.length) return;
      words[word] &= ~(1 << (i & 31));
      if (words[word] !== 0) return;
      i = word;
    }
  }

  /** The smallest member that is `from` or more; -1 when there is none. */
  next(from: number): number {
    let i = from;
    for (let level = 0; level < LEVELS; level++) {
      const words = this.#levels[level];
      if (i >= words.length * 32) return -1;
      const word = i >>> 5;
      const rest = words[word] & (-1 << (i & 31));
      if (rest !== 0) {
        i = word * 32 + lowest(rest);
        while (level-- > 0) i = i * 32 + lowest(this.#levels[level][i]);
        return i;
      }
      i = word + 1;
    }
    return -1;
  }

  /** Makes room. Doubling: a million members are 125 kB, copied in microseconds. */
  #reach(level: number, word: number): Uint32Array {
    const words = this.#levels[level];
    if (word < words.length) return words;
    const grown = new Uint32Array(Math.max(word + 1, words.length * 2));
    grown.set(words);
    this.#levels[level] = grown;
    return grown;
  }
}

function lowest(word: number): number {
  return 31 - Math.clz32(word & -word);
}
