/** A list of the service as a table, or one thing of it, as the page's address says. */
import {
  announce,
  block,
  el,
  holdFocus,
  mayFocus,
  note,
  problem,
  row,
  say,
  sendButton,
  table,
  viewHeading,
} from './dom.js';
import { select, textInput } from './form.js';
import { indented } from './json.js';
import { go, hashOf, place } from './place.js';
import { call } from './wire.js';

const PAGE_SIZES = ['5', '10', '20', '50', '100'];
/** The most rows of new things that belong on another page. */
const MAX_ADDED = 5;
const FOCUSABLE = 'a, button';

const choice = (text, control) => el('label', { class: 'choice' }, el('span', { text }), control);

export class List {
  /**
   * `view`: its name in the address; `path` of the list, `onePath(id)` of one thing; `thing` and `things` in words;
   * `statuses` (none: no filter); `size` of a page unless the address says one; `columns`: [class, heading,
   * cell(item) → nodes]; `empty`: the text if there are none; `seen(items)`: called for every page.
   */
  constructor({ view, path, onePath, thing, things, statuses = [], size = '20', columns, empty, seen = () => {} }) {
    Object.assign(this, { view, path, onePath, thing, things, size, columns, empty, seen });
    this.asked = 0;
    this.said = new Map(); // results of actions, by id: [text, bad]
    this.trail = [];
    const choose = () => this.#go({});
    this.status = select([['', 'All'], ...statuses], { on: { change: choose } });
    this.sizes = select(PAGE_SIZES, { on: { change: choose } });
    this.tools = el('div', { class: 'toolbar' }, ...this.#tools(statuses.length > 0));
    this.back = el('p', { class: 'back' }, el('a', { href: `#${view}`, text: `← All ${things}` }));
    this.table = table(things, columns);
    this.state = el('div', { class: 'told' });
    this.note = note(); // what came of an action whose row is no longer shown
    this.first = sendButton('First page', () => this.#go({}));
    const goBack = () => this.#go({ after: this.trail.at(-1) }, this.trail.slice(0, -1));
    const goOn = () => this.#go({ after: this.nextAfter }, [...this.trail, this.after ?? '']);
    this.previous = sendButton('Previous page', goBack);
    this.next = sendButton('Next page', goOn);
    this.position = el('p', { class: 'hint position' });
    const pager = el('div', { class: 'pager' }, this.first, this.previous, this.next, this.position);
    this.element = el('div', { class: 'list' }, this.back, this.tools, this.note, this.table, this.state, pager);
    this.clear();
  }

  #tools(hasStatus) {
    const id = textInput({ inputmode: 'numeric', size: 6, 'aria-label': `Id of one ${this.thing}` });
    const submit = (event) => {
      event.preventDefault();
      if (id.value.trim() !== '') go(`#${this.view}/${encodeURIComponent(id.value.trim())}`);
      id.value = '';
    };
    const find = el('form', { class: 'find', on: { submit } }, choice('Id', id), sendButton('Show'));
    return [
      ...(hasStatus ? [choice('Status', this.status)] : []),
      choice('Page size', this.sizes),
      ...(this.onePath ? [find] : []),
      sendButton('Reload', () => this.load()),
    ];
  }

  #go(query, trail) {
    const limit = this.sizes.value === this.size ? undefined : this.sizes.value;
    go(hashOf(this.view, { status: this.status.value, limit, ...query }), trail);
  }

  /** Shows the page or thing that the address names, and reads it unless it is there already. */
  async show({ id, query, trail } = place()) {
    this.trail = trail;
    this.one = this.onePath && id;
    this.after = query.get('after') ?? undefined;
    this.status.value = query.get('status') ?? '';
    this.sizes.value = query.get('limit') ?? this.size;
    if (this.sizes.value === '') this.sizes.value = this.size;
    const asked = new URLSearchParams({ limit: this.sizes.value });
    if (this.status.value !== '') asked.set('status', this.status.value);
    if (this.after !== undefined) asked.set('after', this.after);
    this.url = this.one === undefined ? `${this.path}?${asked}` : this.onePath(this.one);
    if (this.url !== this.current) await this.load();
    else this.draw();
  }

  async load() {
    const asked = ++this.asked;
    const { url } = this;
    this.focusBack ??= holdFocus();
    this.element.setAttribute('aria-busy', 'true');
    this.note.replaceChildren();
    if (url !== this.current) {
      Object.assign(this, { items: [], added: [], current: undefined, nextAfter: undefined });
      this.said.clear();
      this.draw(el('p', { class: 'state', text: 'Loading…' }));
    }
    const reply = await call('GET', url, { again: true });
    if (asked !== this.asked) return; // overtaken by a later one
    this.element.removeAttribute('aria-busy');
    if (reply?.ok) this.#take(reply, url);
    else this.#tellFailure(reply);
    this.focusBack?.(this.next, this.previous, viewHeading());
    this.focusBack = undefined;
  }

  #tellFailure(reply) {
    const told = reply?.message ?? 'Not sent: the service asked to wait.';
    const isNoId = this.one !== undefined && /^after: /.test(told); // of a parameter that nobody typed
    const why = isNoId ? `There is no ${this.thing} ${this.one}: its id is a 64-bit integer.` : told;
    this.state.replaceChildren(problem(why, () => this.load()));
    if (this.element.checkVisibility()) announce(why);
  }

  #take(reply, url) {
    const next = reply.next && new URL(reply.next, location.origin).searchParams;
    const items = [reply.value].flat().filter(({ id }) => this.one === undefined || String(id) === this.one);
    Object.assign(this, {
      current: url,
      items,
      added: [],
      nextAfter: next?.get('after'),
      text: reply.text.replace(/^\[|\]$/g, ''),
    });
    this.said.clear();
    this.seen(items);
    this.draw();
    if (!this.element.checkVisibility()) return;
    const count = `${items.length} ${items.length === 1 ? this.thing : this.things}. ${this.position.textContent}`;
    const one = items.length === 0 ? this.state.textContent : `One ${this.thing}: ${this.one}.`;
    announce(this.one === undefined ? count : one);
  }

  clear() {
    this.asked++;
    this.focusBack = undefined;
    this.element.removeAttribute('aria-busy');
    Object.assign(this, { items: [], added: [], nextAfter: undefined, current: undefined });
    this.said.clear();
    this.draw('');
  }

  /** Shows a new thing: at its place if that is on this page, else above. Not if the filter excludes it. */
  append(item) {
    const isWanted = this.status.value === '' || this.status.value === item.status;
    if (this.current === undefined || this.one !== undefined || !isWanted) return false;
    if (this.shown().some(({ id }) => String(id) === String(item.id))) return true; // a reply given again
    const isEnd = this.nextAfter === undefined && this.items.length < Number(this.sizes.value);
    const isBehind = (id) => id === undefined || BigInt(item.id) > BigInt(id);
    const last = this.items.at(-1)?.id ?? item.id;
    if (isBehind(this.after) && (isEnd || !isBehind(last)))
      this.items = [...this.items, item].sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    else this.added = [item, ...this.added].slice(0, MAX_ADDED);
    this.draw();
    return true;
  }

  /** All things with a row, from the top. */
  shown() {
    return [...this.added, ...this.items];
  }

  /** Shows the result of an action in the row of its thing, until another page is shown, and announces it. */
  say(id, text, bad = false) {
    if (!this.#drawn(id)) return say(this.note, text, bad);
    this.said.set(String(id), [text, bad]);
    this.drawRows();
    announce(text);
  }

  draw(state = this.#stateNow()) {
    this.drawRows();
    this.state.replaceChildren(state);
    this.tools.hidden = this.one !== undefined;
    this.back.hidden = this.one === undefined;
    this.first.hidden = this.after === undefined;
    this.previous.hidden = this.trail.length === 0;
    this.next.hidden = this.nextAfter === undefined || this.one !== undefined;
    const [first, last] = [this.items[0], this.items.at(-1)];
    const follows = this.nextAfter === undefined ? 'the last' : 'more follow';
    const isPage = last !== undefined && this.one === undefined;
    this.position.textContent = isPage ? `Ids ${first.id} to ${last.id} · ${follows}` : '';
  }

  /** The text below the table: the JSON of a single thing, or that there are none. */
  #stateNow() {
    if (this.one !== undefined && this.items.length > 0) return block('As the service gives it', indented(this.text));
    if (this.shown().length > 0) return '';
    const none = this.status.value === '' ? this.empty : `No ${this.things} are ${this.status.value}.`;
    const text = this.one === undefined ? none : `There is no ${this.thing} ${this.one}.`;
    return el('p', { class: 'state', text });
  }

  #rowOf(item) {
    const [text, bad] = this.said.get(String(item.id)) ?? [];
    const mark = this.added.includes(item) && text === undefined ? 'Just added' : undefined;
    const words = text ?? mark;
    const cells = this.columns.map(([name, , cell]) => {
      const isPlace = name === 'col-main' && words !== undefined;
      return isPlace ? [...cell(item), el('p', { class: `said${bad ? ' bad' : ''}`, text: words })] : cell(item);
    });
    return row(this.columns, cells, { tabindex: -1, 'data-id': item.id });
  }

  /** Draws the rows alone, after a change of their content. The focus stays where it is. */
  drawRows() {
    const body = this.table.tBodies[0];
    const focused = body.contains(document.activeElement) ? document.activeElement : undefined;
    const id = focused?.closest('tr').dataset.id;
    const at = focused && [...focused.closest('tr').querySelectorAll(FOCUSABLE)].indexOf(focused);
    body.replaceChildren(...this.shown().map((item) => this.#rowOf(item)));
    this.table.hidden = this.shown().length === 0;
    const now = focused && this.#drawn(id);
    (now?.querySelectorAll(FOCUSABLE)[at] ?? now)?.focus();
  }

  #drawn = (id) => [...this.table.tBodies[0].rows].find((one) => one.dataset.id === String(id));

  /** Draws again; the focus stays in the row, where its button may have become another one, or where the user put it. */
  refresh(id) {
    const before = this.#drawn(id);
    const isHere = before === undefined || mayFocus(before);
    this.drawRows();
    if (this.one !== undefined) this.state.replaceChildren(); // its JSON is out of date
    const found = this.#drawn(id);
    if (isHere) (found?.querySelector('button') ?? found)?.focus();
  }
}
