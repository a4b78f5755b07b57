/** A list of the service as a table, or one item of it, as the page's address says. */
import { announce, block, type Content, el, problem, report, row, sendButton, state, table } from './dom.ts';
import { isVisible } from './focus.ts';
import { clearForms, select } from './form.ts';
import { indented } from './json.ts';
import type { Id } from './model.ts';
import { call, type Reply, type Success } from './wire.ts';

const PAGE_SIZE = 20;

/** The address names the view and its page: `#animals?status=sold&after=10`, `#animals/7`, `#reference/createPet`. */
export function address() {
  const [path, query] = location.hash.slice(1).split('?');
  const [view, written = ''] = path.split('/');
  const id = new URLSearchParams(`id=${written}`).get('id') || undefined; // decoded, and what cannot be is left as it is
  return { view, id, query: new URLSearchParams(query) };
}

const isSame = (id: Id | undefined, other: Id | undefined) => String(id) === String(other);

interface Item {
  id: Id;
  status?: string;
}

interface Options<T extends Item> {
  /** Its name in the address. */
  view: string;
  path: string;
  /** The path of one item; without it there is no page of one alone. */
  onePath?: (id: string) => string;
  /** The item in words, and several. */
  thing: string;
  things: string;
  statuses?: readonly string[];
  columns: readonly (readonly [name: string, heading: string, cell: (item: T) => Content])[];
  /** The text if there are none. */
  empty: string;
  /** Called for every page that was read. */
  seen?: (items: T[]) => void;
  /** Stands beside one item; filled when that was read. */
  detail?: { element: HTMLElement; fill(item: T): void };
}

export class List<T extends Item> {
  readonly element: HTMLElement;
  /** Whether one item can be shown alone. */
  readonly hasItems: boolean;
  readonly #options: Options<T>;
  readonly #status: HTMLSelectElement;
  readonly #tools: HTMLElement;
  readonly #back: HTMLAnchorElement;
  readonly #table: HTMLTableElement;
  readonly #state = el('div', { class: 'below' });
  /** The result of an action whose row is no longer shown. */
  readonly #note = el('p', { class: 'note' });
  readonly #pager = el('div', { class: 'pager' });

  /** The id of the item that is shown alone. */
  one: string | undefined;
  /** What is wanted, as the address says. */
  #url = '';
  #after: string | undefined;
  /** What is shown: its address at the service, and what that gave. */
  #current: string | undefined;
  #items: T[] = [];
  #text: string | undefined;
  #nextAfter: string | undefined;
  #position = '';
  /** Of actions, by id. */
  #results = new Map<string, { text: string; isBad: boolean }>();
  #loads = 0;

  constructor(options: Options<T>) {
    this.#options = options;
    this.hasItems = options.onePath !== undefined;
    const { view, things, statuses, columns, detail } = options;
    this.#status = select([['', 'All'], ...(statuses ?? [])], { on: { change: () => this.#go() } });
    const status = statuses && el('label', {}, 'Status ', this.#status);
    const reload = sendButton('Reload', () => this.load());
    this.#tools = el('div', { class: 'toolbar' }, status, reload);
    this.#back = el('a', { href: `#${view}`, text: `← All ${things}` });
    this.#table = table(things, columns);
    const back = el('p', { class: 'back' }, this.#back);
    const parts = [back, this.#tools, this.#note, this.#table, detail?.element, this.#state, this.#pager];
    this.element = el('div', { class: 'list' }, ...parts);
    this.clear();
  }

  /** Shows the first page, or the one after this id. */
  #go(after = ''): void {
    const given = Object.entries({ status: this.#status.value, after }).filter(([, value]) => value);
    const query = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
    location.hash = `#${this.#options.view}${query}`;
  }

  /** Reads and shows the page or item that the address names. */
  async show(): Promise<void> {
    const { id, query } = address();
    const { view, path, onePath } = this.#options;
    this.one = onePath && id;
    this.#after = query.get('after') ?? undefined;
    this.#status.value = query.get('status') ?? '';
    const wanted = new URLSearchParams({ limit: String(PAGE_SIZE) });
    if (this.#status.value !== '') wanted.set('status', this.#status.value);
    if (this.#after !== undefined) wanted.set('after', this.#after);
    this.#url = onePath && id !== undefined ? onePath(id) : `${path}?${wanted}`;
    if (this.one === undefined) this.#back.href = location.hash || `#${view}`; // the page that an item was come to from
    await this.load();
  }

  async load(): Promise<void> {
    const number = ++this.#loads;
    const url = this.#url;
    this.element.setAttribute('aria-busy', 'true');
    this.#note.replaceChildren();
    if (url !== this.#current) {
      this.#forget();
      this.drawRows();
      this.#state.replaceChildren(state('Loading…'));
    }
    const reply = await call<T | T[]>('GET', url);
    if (number !== this.#loads) return; // overtaken by a later one
    this.element.removeAttribute('aria-busy');
    if (reply?.ok) this.#take(reply, url);
    else this.#showFailure(reply);
  }

  /** Without a reply the service asks to wait; the page is read when that ends. */
  #showFailure(reply: Reply | undefined): void {
    if (this.#current === undefined) this.#drawFrame();
    if (reply === undefined || (reply.status === 0 && this.#current !== undefined)) {
      const later = state('Shown when the service can be called again.'); // the banner says why
      this.#state.replaceChildren(...(this.#current ? [] : [later]));
      return;
    }
    const isNoId = this.one !== undefined && /^after: /.test(reply.message); // of a parameter that nobody typed
    const none = `There is no ${this.#options.thing} ${this.one}: its id is a 64-bit integer.`;
    const why = isNoId ? none : reply.message;
    this.#state.replaceChildren(problem(why, () => this.load(), reply.status));
    if (isVisible(this.element)) announce(why);
  }

  #take({ next, value, text }: Success<T | T[]>, url: string): void {
    const { seen, detail, thing, things } = this.#options;
    this.#forget();
    this.#current = url;
    this.#items = [value].flat().filter(({ id }) => this.one === undefined || isSame(id, this.one)) as T[];
    this.#nextAfter = (next && new URL(next, location.origin).searchParams.get('after')) || undefined;
    this.#text = text.replace(/^\[|\]$/g, '');
    seen?.(this.#items);
    if (this.one !== undefined && this.#items.length > 0) detail?.fill(this.#items[0]);
    this.#draw();
    if (!isVisible(this.element)) return;
    const count = `${this.#items.length} ${this.#items.length === 1 ? thing : things}. ${this.#position}`;
    const one = this.#items.length === 0 ? this.#state.textContent : `One ${thing}: ${this.one}.`;
    announce(this.one === undefined ? count : (one ?? ''));
  }

  #forget(): void {
    this.#items = [];
    this.#nextAfter = undefined;
    this.#current = undefined;
    this.#results.clear();
  }

  clear(): void {
    this.#loads++;
    this.element.removeAttribute('aria-busy');
    this.#forget();
    this.#draw([]);
  }

  has = (id: Id): boolean => this.#items.some((one) => isSame(one.id, id));

  /** Changes what is known of an item. `text`: its JSON as it is now, if that is known. */
  change(id: Id, members: Partial<T>, text?: string): void {
    if (!this.has(id)) return;
    for (const one of this.#items) if (isSame(one.id, id)) Object.assign(one, members);
    this.#text = text;
    this.#draw();
  }

  /** The item was removed. */
  remove(id: Id, text: string): void {
    announce(text);
    if (!this.has(id)) return; // another page is shown by now
    this.#items = this.#items.filter((one) => !isSame(one.id, id));
    this.#draw([state(text)]);
  }

  /** Shows the result of an action in the row of its item, until another page is shown, and announces it. */
  report(id: Id, text: string, isBad = false): void {
    if (this.one !== undefined) clearForms(); // of what they said before
    if (this.has(id)) {
      this.#results.set(String(id), { text, isBad });
      this.drawRows();
      announce(text);
    } else report(this.#note, text, isBad);
  }

  #draw(below: HTMLElement[] = this.#stateNow()): void {
    this.drawRows();
    this.#state.replaceChildren(...below);
    this.#drawFrame();
  }

  /** All around the rows. It stays while another page is on its way: so does the focus on a button there. */
  #drawFrame(): void {
    const { detail } = this.#options;
    const isOne = this.one !== undefined;
    this.#tools.hidden = isOne;
    if (this.#back.parentElement) this.#back.parentElement.hidden = !isOne;
    if (detail) detail.element.hidden = !isOne || this.#items.length === 0;
    const [first, last] = [this.#items.at(0), this.#items.at(-1)];
    const ids = first === last ? `Id ${first?.id}` : `Ids ${first?.id} to ${last?.id}`;
    const follows = this.#nextAfter === undefined ? 'no more' : 'more follow';
    this.#position = last === undefined || isOne ? '' : `${ids} · ${follows}`;
    const turn = (text: string, after?: string) =>
      sendButton(text, () => {
        this.#go(after);
        this.element.scrollIntoView(); // its first row is far above
      });
    this.#pager.replaceChildren(
      this.#after === undefined ? '' : turn('First page'),
      this.#nextAfter === undefined || isOne ? '' : turn('Next page', this.#nextAfter),
      el('p', { class: 'hint position', text: this.#position }),
    );
  }

  /** Below the table: the JSON of a single item, or that there are none. */
  #stateNow(): HTMLElement[] {
    const { thing, things, empty } = this.#options;
    if (this.#items.length > 0) {
      const isKnown = this.one !== undefined && this.#text !== undefined;
      return isKnown ? [block('As the service gives it', indented(this.#text ?? ''))] : [];
    }
    const none = this.#status.value === '' ? empty : `No ${things} are ${this.#status.value}.`;
    return [state(this.one === undefined ? none : `There is no ${thing} ${this.one}.`)];
  }

  drawRows(): void {
    const { columns } = this.#options;
    const rows = this.#items.map((item) => {
      const { text, isBad } = this.#results.get(String(item.id)) ?? {};
      const result = text === undefined ? '' : el('p', { class: `result${isBad ? ' bad' : ''}`, text });
      const cells = columns.map(([name, , cell]) => [cell(item), name === 'col-main' ? result : ''].flat());
      return row(columns, cells, { tabindex: -1, 'data-id': item.id });
    });
    this.#table.tBodies[0].replaceChildren(...rows);
    this.#table.hidden = rows.length === 0;
  }
}
