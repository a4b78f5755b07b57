const BITS = 32;

/** A set of slot numbers at one bit each, whose members are found by scanning 32 of them at a time. */
export class SlotSet {
  #words: Uint32Array;
  /** Where the next scan begins, so that a bounded one does not always serve the lowest slots. */
  #cursor = 0;

  /** For slots below `capacity`. */
  constructor(capacity: number) {
    this.#words = new Uint32Array(Math.ceil(capacity / BITS));
  }

  grow(capacity: number): void {
    this.#words = grown(this.#words, new Uint32Array(Math.ceil(capacity / BITS)));
  }

  add(slot: number): void {
    this.#words[slot >>> 5] |= 1 << (slot & 31);
  }

  delete(slot: number): void {
    this.#words[slot >>> 5] &= ~(1 << (slot & 31));
  }

  /** Removes and returns the members that `wanted` accepts, at most `max` of them. */
  drain(max: number, wanted: (slot: number) => boolean = () => true): number[] {
    const drained: number[] = [];
    const words = this.#words;
    for (let step = 0; step < words.length && drained.length < max; step++) {
      const at = (this.#cursor + step) % words.length;
      for (let word = words[at]; word !== 0 && drained.length < max; word &= word - 1) {
        const slot = at * BITS + 31 - Math.clz32(word & -word);
        if (!wanted(slot)) continue;
        this.delete(slot);
        drained.push(slot);
      }
    }
    if (drained.length === max && max > 0) this.#cursor = drained[max - 1] >>> 5;
    return drained;
  }
}

/** The larger array, with what was in the smaller one. */
export function grown<A extends Float64Array | Uint32Array | Uint8Array>(from: A, into: A): A {
  into.set(from);
  return into;
}
