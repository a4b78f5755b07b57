/**
 * One list of batches in memory that several stores share, and collide on: a journal as a database would be, without the
 * database. Nothing is handed on by reference.
 */
import type { Change, Journal } from '../../src/store/model.ts';

export class SharedList {
  readonly batches: Change[][] = [];
  readonly #followers = new Set<() => void>();

  journal(): Journal {
    let seen = 0;
    let look = () => {};
    const unseen = () => {
      const changes = this.batches.slice(seen).flat();
      seen = this.batches.length;
      return structuredClone(changes);
    };
    return {
      replay: async (state) => state.apply(unseen()),
      append: async (batch) => {
        const head = seen;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 2));
        if (head < this.batches.length) return unseen();
        seen++;
        this.batches.push(structuredClone(batch));
        for (const follower of this.#followers) setImmediate(follower);
        return undefined;
      },
      follow: (take) => {
        look = () => {
          const changes = unseen();
          if (changes.length > 0) take(changes);
        };
        this.#followers.add(look);
      },
      close: async () => void this.#followers.delete(look),
    };
  }
}
