/** A list of the service as a table, or one item of it, as the page's address says. */
import { announce, block, el, problem, redraw, report, row, sendButton, state, table } from './dom.js';
import { clearForms, idInput, select } from './form.js';
import { indented } from './json.js';
import { call } from './wire.js';

const PAGE_SIZES = ['5', '10', '20', '50', '100'];

/**
 * The address names the view and its page: `#animals?status=sold&after=10`, `#animals/7`, `#reference/createPet`.
 * `trail`, which the browser keeps with the address: where the pages before this one begin, in order.
 */
export function address() {
  const [path, query] = location.hash.slice(1).split('?');
  const [view, written = ''] = path.split('/');
  return { view, id: readId(written), query: new URLSearchParams(query), trail: history.state?.trail ?? [] };
}

/** As it is shown and compared: `007` and `7` are one id. Undefined if the address has none. */
function readId(text) {
  if (/^\d+$/.test(text)) return String(BigInt(text));
  try {
    return decodeURIComponent(text) || undefined;
  } catch {
    return text;
  }
}

function go(hash, trail = []) {
  history.pushState({ trail }, '', hash);
  dispatchEvent(new Event('hashchange'));
}

const choice = (text, control) => el('label', { class: 'choice' }, el('span', { text }), control);
const isSame = (id, other) => String(id) === String(other);

export class List {
  /**
   * `view`: its name in the address; `path` of the list, `onePath(id)` of one item; `thing` and `things` in words;
   * `statuses` (none: no filter); `size` of a page unless the address says one; `columns`: [class, heading,
   * cell(item) → nodes]; `empty`: the text if there are none; `seen(items)`: called for every page; `detail`: an element
   * beside one item, and `fill(item)`, called when the item was read.
   */
  constructor(options) {
    Object.assign(this, { statuses: [], size: '20', seen: () => {} }, options);
    this.loads = 0;
    this.results = new Map(); // of actions, by id: [text, isBad]
    const choose = () => this.#go({});
    this.status = select([['', 'All'], ...this.statuses], { on: { change: choose } });
    this.sizes = select(PAGE_SIZES, { on: { change: choose } });
    this.tools = el('div', { class: 'toolbar' }, ...this.#tools());
    this.back = el('p', { class: 'back' }, el('a', { href: `#${this.view}`, text: `← All ${this.things}` }));
    this.table = table(this.things, this.columns);
    this.state = el('div', { class: 'below' });
    this.note = el('p', { class: 'note' }); // the result of an action whose row is no longer shown
    this.pager = el('div', { class: 'pager' });
    const parts = [this.back, this.tools, this.note, this.table, this.detail?.element, this.state, this.pager];
    this.element = el('div', { class: 'list' }, ...parts);
    this.clear();
  }

  #tools() {
    const id = idInput({ size: 6, 'aria-label': `Id of one ${this.thing}` });
    const submit = (event) => {
      event.preventDefault();
      if (id.value.trim() !== '') go(`#${this.view}/${encodeURIComponent(id.value.trim())}`);
      id.value = '';
    };
    return [
      this.statuses.length > 0 ? choice('Status', this.status) : undefined,
      choice('Page size', this.sizes),
      this.onePath && el('form', { class: 'find', on: { submit } }, choice('Id', id), sendButton('Show')),
      sendButton('Reload', () => this.load()),
    ];
  }

  #go(query, trail) {
    const limit = this.sizes.value === this.size ? '' : this.sizes.value;
    const given = Object.entries({ status: this.status.value, limit, ...query }).filter(([, value]) => value);
    go(given.length === 0 ? `#${this.view}` : `#${this.view}?${new URLSearchParams(given)}`, trail);
  }

  /** Shows the page or item that the address names, and reads it unless it is there already. */
  async show({ id, query, trail } = address()) {
    this.trail = trail;
    this.one = this.onePath && id;
    this.after = query.get('after') ?? undefined;
    this.status.value = query.get('status') ?? '';
    this.sizes.value = query.get('limit') ?? this.size;
    if (this.sizes.value === '') this.sizes.value = this.size;
    const wanted = new URLSearchParams({ limit: this.sizes.value });
    if (this.status.value !== '') wanted.set('status', this.status.value);
    if (this.after !== undefined) wanted.set('after', this.after);
    this.url = this.one === undefined ? `${this.path}?${wanted}` : this.onePath(this.one);
    if (this.url !== this.current) await this.load();
    else this.draw();
  }

  async load() {
    const number = ++this.loads;
    const { url } = this;
    this.element.setAttribute('aria-busy', 'true');
    this.note.replaceChildren();
    if (url !== this.current) {
      this.#forget();
      this.drawRows();
      redraw(this.state, [state('Loading…')]);
    }
    const reply = await call('GET', url);
    if (number !== this.loads) return; // overtaken by a later one
    this.element.removeAttribute('aria-busy');
    if (reply?.ok) this.#take(reply, url);
    else this.#showFailure(reply);
  }

  /** `reply`: undefined if the service asks to wait; the page is read when that ends. */
  #showFailure(reply) {
    if (this.current === undefined) this.#drawFrame();
    const isInBanner = reply === undefined || (reply.status === 0 && this.current !== undefined);
    if (isInBanner)
      return redraw(this.state, this.current ? [] : [state('Shown when the service can be called again.')]);
    const isNoId = this.one !== undefined && /^after: /.test(reply.message); // of a parameter that nobody typed
    const why = isNoId ? `There is no ${this.thing} ${this.one}: its id is a 64-bit integer.` : reply.message;
    redraw(this.state, [problem(why, () => this.load(), reply.status)]);
    if (this.element.checkVisibility()) announce(why);
  }

  #take({ next, value, text }, url) {
    const items = [value].flat().filter(({ id }) => this.one === undefined || isSame(id, this.one));
    this.#forget();
    const nextAfter = next && new URL(next, location.origin).searchParams.get('after');
    Object.assign(this, { current: url, items, nextAfter, text: text.replace(/^\[|\]$/g, '') });
    this.seen(items);
    if (this.one !== undefined && items.length > 0) this.detail?.fill(items[0]);
    this.draw();
    if (!this.element.checkVisibility()) return;
    const count = `${items.length} ${items.length === 1 ? this.thing : this.things}. ${this.position}`;
    const one = items.length === 0 ? this.state.textContent : `One ${this.thing}: ${this.one}.`;
    announce(this.one === undefined ? count : one);
  }

  #forget() {
    Object.assign(this, { items: [], nextAfter: undefined, current: undefined });
    this.results.clear();
  }

  clear() {
    this.loads++;
    this.element.removeAttribute('aria-busy');
    this.#forget();
    this.trail = [];
    this.draw([]);
  }

  /** Adds a new item to the page if it belongs there; says whether it has a row. */
  append(item) {
    const isWanted = this.status.value === '' || this.status.value === item.status;
    if (this.current === undefined || this.one !== undefined || !isWanted) return false;
    if (this.has(item.id)) return true; // a replayed reply
    const isBehind = (id) => id === undefined || BigInt(item.id) > BigInt(id);
    if (!isBehind(this.after)) return false;
    const last = this.items.at(-1)?.id;
    if (isBehind(last) && this.items.length >= Number(this.sizes.value)) this.nextAfter ??= last;
    if (isBehind(last) && this.nextAfter !== undefined) {
      this.#drawFrame();
      return false;
    }
    this.items = [...this.items, item].sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    this.draw();
    return true;
  }

  has = (id) => this.items.some((one) => isSame(one.id, id));

  /** Changes what is known of an item. `text`: its JSON as it is now, if that is known. */
  change(id, members, text) {
    if (!this.has(id)) return;
    for (const one of this.items) if (isSame(one.id, id)) Object.assign(one, members);
    this.text = text;
    this.draw();
  }

  /** The item was removed. */
  remove(id, text) {
    this.items = this.items.filter((one) => !isSame(one.id, id));
    this.draw([state(text)]);
    announce(text);
  }

  /** Shows the result of an action in the row of its item, until another page is shown, and announces it. */
  report(id, text, isBad = false) {
    if (this.one !== undefined) clearForms(); // of what they said before
    if (!this.has(id)) return report(this.note, text, isBad);
    this.results.set(String(id), [text, isBad]);
    this.drawRows();
    announce(text);
  }

  draw(below = this.#stateNow()) {
    this.drawRows();
    redraw(this.state, below);
    this.#drawFrame();
  }

  /** All around the rows. It stays while another page is on its way: so does the focus on a button there. */
  #drawFrame() {
    const isOne = this.one !== undefined;
    this.tools.hidden = isOne;
    this.back.hidden = !isOne;
    if (this.detail) this.detail.element.hidden = !isOne || this.items.length === 0;
    const [first, last] = [this.items[0], this.items.at(-1)];
    const ids = first === last ? `Id ${first?.id}` : `Ids ${first.id} to ${last.id}`;
    const follows = this.nextAfter === undefined ? 'no more' : 'more follow';
    this.position = last === undefined || isOne ? '' : `${ids} · ${follows}`;
    const turn = (text, query, trail) => sendButton(text, () => this.#go(query, trail));
    const { trail, after, nextAfter } = this;
    redraw(this.pager, [
      after === undefined ? '' : turn('First page', {}),
      trail.length === 0 ? '' : turn('Previous page', { after: trail.at(-1) }, trail.slice(0, -1)),
      nextAfter === undefined || isOne ? '' : turn('Next page', { after: nextAfter }, [...trail, after ?? '']),
      el('p', { class: 'hint position', text: this.position }),
    ]);
  }

  /** Below the table: the JSON of a single item, or that there are none. */
  #stateNow() {
    if (this.items.length > 0) {
      const isKnown = this.one !== undefined && this.text !== undefined;
      return isKnown ? [block('As the service gives it', indented(this.text))] : [];
    }
    const none = this.status.value === '' ? this.empty : `No ${this.things} are ${this.status.value}.`;
    return [state(this.one === undefined ? none : `There is no ${this.thing} ${this.one}.`)];
  }

  drawRows() {
    const rows = this.items.map((item) => {
      const [text, isBad] = this.results.get(String(item.id)) ?? [];
      const result = text === undefined ? '' : el('p', { class: `result${isBad ? ' bad' : ''}`, text });
      const cells = this.columns.map(([name, , cell]) => [cell(item), name === 'col-main' ? result : ''].flat());
      return row(this.columns, cells, { tabindex: -1, 'data-id': item.id });
    });
    redraw(this.table.tBodies[0], rows);
    this.table.hidden = rows.length === 0;
  }
}
