/**
 * A set of small non-negative integers that finds the next member after a given one in a handful of steps, however
 * sparse it is. Level 0 has a bit for every number; a bit of level n + 1 says whether a word of level n has any.
 */
export class Bits {
  #levels: Uint32Array[] = [new Uint32Array(1)];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(i: number): boolean {
    const words = this.#levels[0];
    const word = Math.floor(i / 32);
    return word < words.length && (words[word] & (1 << (i & 31))) !== 0;
  }

  add(i: number): void {
    this.addWord(i >>> 5, 1 << (i & 31));
  }

  /** Adds up to 32 numbers at once: `word * 32 + n` for every bit n of `mask`. */
  addWord(word: number, mask: number): void {
    this.#reach(word);
    for (const words of this.#levels) {
      const before = words[word];
      words[word] = before | mask;
      if (words === this.#levels[0]) this.#size += ones(mask & ~before);
      if (before !== 0) return;
      mask = 1 << (word & 31);
      word >>>= 5;
    }
  }

  delete(i: number): void {
    this.deleteWord(i >>> 5, 1 << (i & 31));
  }

  deleteWord(word: number, mask: number): void {
    if (word >= this.#levels[0].length) return;
    for (const words of this.#levels) {
      const before = words[word];
      words[word] = before & ~mask;
      if (words === this.#levels[0]) this.#size -= ones(mask & before);
      if (before === 0 || words[word] !== 0) return;
      mask = 1 << (word & 31);
      word >>>= 5;
    }
  }

  /** Which of `word * 32 + n` are members, as bits. */
  word(word: number): number {
    return this.#levels[0][word] ?? 0;
  }

  /** The smallest member that is `from` or more; -1 when there is none. */
  next(from: number): number {
    let i = from;
    let level = 0;
    for (; level < this.#levels.length; level++) {
      const words = this.#levels[level];
      const word = Math.floor(i / 32);
      if (word >= words.length) return -1;
      const rest = words[word] & (-1 << (i & 31));
      if (rest !== 0) return this.#descend(level, word * 32 + lowest(rest));
      i = word + 1;
    }
    return -1;
  }

  #descend(level: number, i: number): number {
    while (level > 0) {
      level--;
      i = i * 32 + lowest(this.#levels[level][i]);
    }
    return i;
  }

  /** Makes room. Doubling: a million members are 125 kB, copied in microseconds. */
  #reach(word: number): void {
    let words = word + 1;
    if (words <= this.#levels[0].length) return;
    words = Math.max(words, this.#levels[0].length * 2);
    for (let level = 0; ; level++) {
      const grown = new Uint32Array(words);
      const old = this.#levels[level];
      if (old) grown.set(old);
      else grown[0] = this.#levels[level - 1][0] === 0 ? 0 : 1; // what was the top had one word
      this.#levels[level] = grown;
      if (words === 1) return;
      words = Math.ceil(words / 32);
    }
  }
}

function lowest(word: number): number {
  return 31 - Math.clz32(word & -word);
}

/** How many bits are set: summed in pairs, fours, bytes, and then all bytes at once. */
function ones(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
