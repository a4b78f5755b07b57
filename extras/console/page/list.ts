/** A list of the service as a table, a page at a time, as the address says. */
import { announce, type Content, el, problem, report, row, sendButton, state, table } from './dom.ts';
import { isVisible } from './focus.ts';
import { select } from './form.ts';
import type { Id } from './model.ts';
import { call, type Reply, type Success } from './wire.ts';

const PAGE_SIZE = 20;

/** The address names the view and what it shows: `#animals?status=sold&after=10`. */
export function address(): { view: string; query: URLSearchParams } {
  const [view, query] = location.hash.slice(1).split('?');
  return { view, query: new URLSearchParams(query) };
}

interface Item {
  id: Id;
  status: string;
}

interface Options<T extends Item> {
  /** Its name in the address. */
  view: string;
  path: string;
  /** An item in words, and several. */
  thing: string;
  things: string;
  statuses: readonly string[];
  columns: readonly (readonly [name: string, heading: string, cell: (item: T) => Content])[];
  /** The text if there are none. */
  empty: string;
  /** Called for every page that was read. */
  seen?: (items: T[]) => void;
}

export class List<T extends Item> {
  readonly element: HTMLElement;
  readonly #options: Options<T>;
  readonly #status: HTMLSelectElement;
  readonly #table: HTMLTableElement;
  /** What came of the last action. */
  readonly #note = el('p', { class: 'note' });
  readonly #state = el('div');
  readonly #pager = el('div', { class: 'pager' });

  /** What the address asks for, and what is shown: paths of the service. */
  #wanted = '';
  #shown: string | undefined;
  #after: string | undefined;
  #items: T[] = [];
  #nextAfter: string | undefined;
  #loads = 0;

  constructor(options: Options<T>) {
    this.#options = options;
    const { things, statuses, columns } = options;
    this.#status = select([['', 'All'], ...statuses], { on: { change: () => this.#go() } });
    const reload = sendButton('Reload', () => this.load());
    const tools = el('div', { class: 'toolbar' }, el('label', {}, 'Status ', this.#status), reload);
    this.#table = table(things, columns);
    const below = el('div', { class: 'below' }, this.#state, this.#note);
    this.element = el('div', { class: 'list' }, tools, this.#table, below, this.#pager);
    this.clear();
  }

  /** Shows the first page, or the one after this id. */
  #go(after = ''): void {
    const given = Object.entries({ status: this.#status.value, after }).filter(([, value]) => value);
    const query = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
    location.hash = `#${this.#options.view}${query}`;
  }

  /** Reads and shows the page that the address names. */
  show(): Promise<void> {
    const { query } = address();
    this.#after = query.get('after') ?? undefined;
    this.#status.value = query.get('status') ?? '';
    const wanted = new URLSearchParams({ limit: String(PAGE_SIZE) });
    if (this.#status.value !== '') wanted.set('status', this.#status.value);
    if (this.#after !== undefined) wanted.set('after', this.#after);
    this.#wanted = `${this.#options.path}?${wanted}`;
    return this.load();
  }

  async load(): Promise<void> {
    const number = ++this.#loads;
    const path = this.#wanted;
    this.element.setAttribute('aria-busy', 'true');
    this.#note.replaceChildren();
    if (path !== this.#shown) {
      this.#forget();
      this.drawRows();
      this.#state.replaceChildren(state('Loading…'));
    }
    const reply = await call<T[]>('GET', path);
    if (number !== this.#loads) return; // overtaken by a later one
    this.element.removeAttribute('aria-busy');
    if (reply?.ok) this.#take(reply, path);
    else this.#showFailure(reply);
  }

  /** What was shown before stays. Without a reply the service asks to wait, and the page is read when that ends. */
  #showFailure(reply: Reply | undefined): void {
    if (this.#shown === undefined) this.#drawPager();
    if (reply === undefined) {
      const later = state('Shown when the service can be called again.'); // the banner says why
      this.#state.replaceChildren(...(this.#shown === undefined ? [later] : []));
      return;
    }
    this.#state.replaceChildren(problem(reply.message, () => this.load(), reply.status));
    if (isVisible(this.element)) announce(reply.message);
  }

  #take({ next, value }: Success<T[]>, path: string): void {
    const { seen, thing, things } = this.#options;
    this.#shown = path;
    this.#items = value;
    this.#nextAfter = (next && new URL(next, location.origin).searchParams.get('after')) || undefined;
    seen?.(value);
    this.#draw();
    const count = `${value.length} ${value.length === 1 ? thing : things}.`;
    if (isVisible(this.element)) announce(`${count} ${this.#position()}`);
  }

  #forget(): void {
    this.#items = [];
    this.#nextAfter = undefined;
    this.#shown = undefined;
  }

  clear(): void {
    this.#loads++;
    this.element.removeAttribute('aria-busy');
    this.#forget();
    this.#draw();
    this.#state.replaceChildren();
  }

  /** Changes what is known of an item, if it is shown. */
  change(id: Id, members: Partial<T>): void {
    const item = this.#items.find((one) => String(one.id) === String(id));
    if (item === undefined) return;
    Object.assign(item, members);
    this.drawRows();
  }

  /** Tells the result of an action, until a page is read. */
  report(content: Content, isBad = false): void {
    report(this.#note, content, isBad);
  }

  #draw(): void {
    const { things, empty } = this.#options;
    const none = this.#status.value === '' ? empty : `No ${things} are ${this.#status.value}.`;
    this.drawRows();
    this.#state.replaceChildren(...(this.#items.length === 0 ? [state(none)] : []));
    this.#drawPager();
  }

  #position(): string {
    const [first, last] = [this.#items.at(0), this.#items.at(-1)];
    if (first === undefined) return '';
    const ids = first === last ? `Id ${first.id}` : `Ids ${first.id} to ${last?.id}`;
    return `${ids} · ${this.#nextAfter === undefined ? 'no more' : 'more follow'}`;
  }

  /** It stays while another page is on its way: so does the focus on a button there. */
  #drawPager(): void {
    const turn = (text: string, after?: string) =>
      sendButton(text, () => {
        this.#go(after);
        this.element.scrollIntoView(); // its first row is far above
      });
    this.#pager.replaceChildren(
      this.#after === undefined ? '' : turn('First page'),
      this.#nextAfter === undefined ? '' : turn('Next page', this.#nextAfter),
      el('p', { class: 'hint position', text: this.#position() }),
    );
  }

  drawRows(): void {
    const { columns } = this.#options;
    const rows = this.#items.map((item) => {
      const cells = columns.map(([, , cell]) => cell(item));
      return row(columns, cells, { tabindex: -1, 'data-id': item.id });
    });
    this.#table.tBodies[0].replaceChildren(...rows);
    this.#table.hidden = rows.length === 0;
  }
}
