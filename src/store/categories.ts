import type { Category, Int64, Page } from './model.ts';

/** Beyond this, a new category is refused as there being no room. */
export const MAX_CATEGORIES = 1_000_000;

/** Categories by id, and their ids in order. Numbers and bigints compare by value, so both may stand in one list. */
export class Categories {
  readonly #names = new Map<Int64, string>();
  readonly #ids: Int64[] = [];

  get size(): number {
    return this.#names.size;
  }

  get(id: Int64): Category | undefined {
    const name = this.#names.get(id);
    return name === undefined ? undefined : { id, name };
  }

  set(category: Category): void {
    if (!this.#names.has(category.id)) this.#ids.splice(this.#place(category.id), 0, category.id);
    this.#names.set(category.id, category.name);
  }

  page(after: Int64 | undefined, limit: number): Page<Category> {
    let at = 0;
    if (after !== undefined) {
      at = this.#place(after);
      if (this.#ids[at] === after) at++;
    }
    const items = this.#ids.slice(at, at + limit).map((id) => ({ id, name: this.#names.get(id)! }));
    return { items, more: at + limit < this.#ids.length };
  }

  *all(): Generator<Category> {
    for (const id of this.#ids) yield { id, name: this.#names.get(id)! };
  }

  check(): void {
    if (this.#ids.length !== this.#names.size) throw new Error('categories: ids and names differ in number');
    for (let i = 1; i < this.#ids.length; i++) {
      if (!(this.#ids[i - 1] < this.#ids[i])) throw new Error(`categories: ${this.#ids[i]} is out of order`);
    }
  }

  /** Where the id stands or would stand. */
  #place(id: Int64): number {
    let low = 0;
    let high = this.#ids.length;
    if (high > 0 && this.#ids[high - 1] < id) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ids[middle] < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
