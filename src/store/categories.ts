import type { Category, Int64, Page } from './model.ts';

/** Categories by id, and their ids in order. Numbers and bigints compare by value, so both may stand in one list. */
export class Categories extends Map<Int64, Category> {
  readonly #ids: Int64[] = [];

  override set(id: Int64, category: Category): this {
    if (!this.has(id)) this.#ids.splice(this.#place(id), 0, id);
    return super.set(id, category);
  }

  /** Without `after`: from the smallest id. */
  page(after: Int64 | undefined, limit: number): Page<Category> {
    let at = after === undefined ? 0 : this.#place(after);
    if (after !== undefined && this.#ids[at] === after) at++;
    const items = this.#ids.slice(at, at + limit).map((id) => this.get(id)!);
    return { items, more: at + limit < this.#ids.length };
  }

  check(): void {
    if (this.#ids.length !== this.size) throw new Error('categories: ids and names differ in number');
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
