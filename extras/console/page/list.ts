/** A list of the service as a table, or one item of it, as the page's address says. */
// biome-ignore format: names
import {
  announce, block, type Child, type Content, el, problem, report, row, sendButton, state, table,
} from './dom.ts';
import { isVisible } from './focus.ts';
import { clearForms, idInput, select } from './form.ts';
import { indented } from './json.ts';
import type { Id } from './model.ts';
import { call, type Reply, type Success } from './wire.ts';

const PAGE_SIZES = ['5', '10', '20', '50', '100'];
const PAGE_SIZE = '20';

/**
 * The address names the view and its page: `#animals?status=sold&after=10`, `#animals/7`, `#reference/createPet`.
 * `trail`, which the browser keeps with the address: where the pages before this one begin, in order.
 */
export function address() {
  const [path, query] = location.hash.slice(1).split('?');
  const [view, written = ''] = path.split('/');
  const trail: string[] = history.state?.trail ?? [];
  return { view, id: readId(written), query: new URLSearchParams(query), trail };
}

/** As it is shown and compared: `007` and `7` are one id. Undefined if the address has none. */
function readId(text: string): string | undefined {
  if (/^\d+$/.test(text)) return String(BigInt(text));
  try {
    return decodeURIComponent(text) || undefined;
  } catch {
    return text;
  }
}

function go(hash: string, trail: string[] = []): void {
  history.pushState({ trail }, '', hash);
  dispatchEvent(new Event('hashchange'));
}

const choice = (text: string, control: Child) => el('label', { class: 'choice' }, el('span', { text }), control);
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
  readonly #sizes: HTMLSelectElement;
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
  #trail: string[] = [];
  /** What is shown: its address at the service, and what that gave. */
  #current: string | undefined;
  #items: T[] = [];
  #text: string | undefined;
  #nextAfter: string | undefined;
  #position = '';
  /** Of actions, by id. */
  #results = new Map<string, { text: string; isBad: boolean }>();
  #loads = 0;
  /** The last page that was shown of the list, to go back to from an item. */
  #page: { hash: string; trail: string[] };

  constructor(options: Options<T>) {
    this.#options = options;
    this.hasItems = options.onePath !== undefined;
    const { view, things, statuses = [], columns, detail } = options;
    const change = () => this.#go({});
    this.#status = select([['', 'All'], ...statuses], { on: { change } });
    this.#sizes = select(PAGE_SIZES, { on: { change } });
    this.#tools = el('div', { class: 'toolbar' }, ...this.#toolsOf(options));
    this.#page = { hash: `#${view}`, trail: [] };
    this.#back = el('a', { text: `← All ${things}`, on: { click: (event) => this.#goBack(event) } });
    this.#table = table(things, columns);
    const back = el('p', { class: 'back' }, this.#back);
    const parts = [back, this.#tools, this.#note, this.#table, detail?.element, this.#state, this.#pager];
    this.element = el('div', { class: 'list' }, ...parts);
    this.clear();
  }

  #toolsOf({ view, thing, statuses, onePath }: Options<T>) {
    const id = idInput({ size: 6, 'aria-label': `Id of one ${thing}` });
    const submit = (event: SubmitEvent) => {
      event.preventDefault();
      const wanted = id.value.trim();
      id.value = '';
      if (wanted !== '') return go(`#${view}/${encodeURIComponent(wanted)}`);
      announce('Enter an id first.');
      id.focus();
    };
    return [
      statuses && choice('Status', this.#status),
      choice('Page size', this.#sizes),
      onePath && el('form', { class: 'find', on: { submit } }, choice('Id', id), sendButton('Show')),
      sendButton('Reload', () => this.load()),
    ];
  }

  #go(query: Record<string, string>, trail?: string[]): void {
    const limit = this.#sizes.value === PAGE_SIZE ? '' : this.#sizes.value;
    const given = Object.entries({ status: this.#status.value, limit, ...query }).filter(([, value]) => value);
    const { view } = this.#options;
    go(given.length === 0 ? `#${view}` : `#${view}?${new URLSearchParams(given)}`, trail);
  }

  /** The link alone would lose the pages before that one. With a key held down it opens another tab. */
  #goBack(event: MouseEvent): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(this.#page.hash, this.#page.trail);
  }

  /** Shows the page or item that the address names, and reads it unless it is there already. */
  async show(): Promise<void> {
    const { id, query, trail } = address();
    const { path, onePath } = this.#options;
    this.#trail = trail;
    this.one = onePath && id;
    this.#after = query.get('after') ?? undefined;
    this.#status.value = query.get('status') ?? '';
    this.#sizes.value = query.get('limit') ?? PAGE_SIZE;
    if (this.#sizes.value === '') this.#sizes.value = PAGE_SIZE;
    const wanted = new URLSearchParams({ limit: this.#sizes.value });
    if (this.#status.value !== '') wanted.set('status', this.#status.value);
    if (this.#after !== undefined) wanted.set('after', this.#after);
    this.#url = onePath && id !== undefined ? onePath(id) : `${path}?${wanted}`;
    if (this.one === undefined) this.#page = { hash: location.hash || `#${this.#options.view}`, trail };
    this.#back.href = this.#page.hash;
    if (this.#url !== this.#current) await this.load();
    else this.#draw();
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
    this.#trail = [];
    this.#draw([]);
  }

  /** Adds a new item to the page if it belongs there; says whether it has a row. */
  append(item: T): boolean {
    const isWanted = this.#status.value === '' || this.#status.value === item.status;
    if (this.#current === undefined || this.one !== undefined || !isWanted) return false;
    if (this.has(item.id)) return true; // a replayed reply
    const isBehind = (id: Id | undefined) => id === undefined || BigInt(item.id) > BigInt(id);
    if (!isBehind(this.#after)) return false;
    const last = this.#items.at(-1)?.id;
    if (isBehind(last) && this.#items.length >= Number(this.#sizes.value)) this.#nextAfter ??= String(last);
    if (isBehind(last) && this.#nextAfter !== undefined) {
      this.#drawFrame();
      return false;
    }
    this.#items = [...this.#items, item].sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    this.#draw();
    return true;
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
    const turn = (text: string, after: string | undefined, trail?: string[]) =>
      sendButton(text, () => this.#go(after === undefined ? {} : { after }, trail));
    const [trail, after, nextAfter] = [this.#trail, this.#after, this.#nextAfter];
    this.#pager.replaceChildren(
      after === undefined ? '' : turn('First page', undefined),
      trail.length === 0 ? '' : turn('Previous page', trail.at(-1), trail.slice(0, -1)),
      nextAfter === undefined || isOne ? '' : turn('Next page', nextAfter, [...trail, after ?? '']),
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
