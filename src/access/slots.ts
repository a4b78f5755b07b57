/** A set of slot numbers at one bit each, whose members are found by looking at 32 of them at a time. */
export class SlotSet {
  #words = new Uint32Array(1);

  add(slot: number): void {
    while (slot >>> 5 >= this.#words.length) {
      const words = new Uint32Array(2 * this.#words.length);
      words.set(this.#words);
      this.#words = words;
    }
    this.#words[slot >>> 5] |= 1 << (slot & 31);
  }

  /** Removes and returns members, at most `max` of them. */
  drain(max: number): number[] {
    const drained: number[] = [];
    for (let at = 0; at < this.#words.length && drained.length < max; at++) {
      let word = this.#words[at];
      for (; word !== 0 && drained.length < max; word &= word - 1)
        drained.push(32 * at + 31 - Math.clz32(word & -word));
      this.#words[at] = word;
    }
    return drained;
  }
}
