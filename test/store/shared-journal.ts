/**
 * One list of batches in memory that several stores share, and collide on: a journal as a database would be, without the
 * database. Nothing is handed on by reference.
 */
import type { Journal, Operation } from '../../src/store/model.ts';
import type { State } from '../../src/store/state.ts';

export class SharedList {
  readonly batches: Operation[][] = [];
  readonly #followers = new Set<() => void>();

  journal(): SharedJournal {
    return new SharedJournal(this);
  }

  push(batch: Operation[]): void {
    this.batches.push(structuredClone(batch));
    for (const look of this.#followers) setImmediate(look);
  }

  follow(look: () => void): () => void {
    this.#followers.add(look);
    return () => this.#followers.delete(look);
  }
}

export class SharedJournal implements Journal {
  readonly #list: SharedList;
  #seen = 0;
  #unfollow: (() => void) | undefined;

  constructor(list: SharedList) {
    this.#list = list;
  }

  async replay(state: State): Promise<void> {
    state.apply(this.#unseen());
  }

  async append(batch: Operation[]): Promise<Operation[] | undefined> {
    const head = this.#seen;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 2));
    if (head < this.#list.batches.length) return this.#unseen();
    this.#seen++;
    this.#list.push(batch);
    return undefined;
  }

  follow(take: (operations: Operation[]) => void): void {
    this.#unfollow = this.#list.follow(() => {
      const operations = this.#unseen();
      if (operations.length > 0) take(operations);
    });
  }

  async close(): Promise<void> {
    this.#unfollow?.();
  }

  #unseen(): Operation[] {
    const operations = this.#list.batches.slice(this.#seen).flat();
    this.#seen = this.#list.batches.length;
    return structuredClone(operations);
  }
}
