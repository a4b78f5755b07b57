const BITS = 32;

/** A set of slot numbers at one bit each, whose members are found by scanning 32 of them at a time. */
export class SlotSet {
  #words = new Uint32Array();
  /** Where the next scan begins, so that a bounded one does not always serve the lowest slots. */
  #cursor = 0;

  /** Makes room for slots below `capacity`. */
  grow(capacity: number): void {
    const words = new Uint32Array(Math.ceil(capacity / BITS));
    words.set(this.#words);
    this.#words = words;
  }

  add(slot: number): void {
    this.#words[slot >>> 5] |= 1 << (slot & 31);
  }

  /** Removes and returns members, at most `max` of them. */
  drain(max: number): number[] {
    const drained: number[] = [];
    const words = this.#words;
    for (let scanned = 0; scanned < words.length; scanned++) {
      let word = words[this.#cursor];
      for (; word !== 0 && drained.length < max; word &= word - 1) {
        drained.push(this.#cursor * BITS + 31 - Math.clz32(word & -word));
      }
      words[this.#cursor] = word;
      if (word !== 0) break;
      this.#cursor = (this.#cursor + 1) % words.length;
    }
    return drained;
  }
}
