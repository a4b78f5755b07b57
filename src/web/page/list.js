/** A list of the service as a table: filter, page size, first and next page; empty, loading and error states. */
import { announce, el, problem, sendButton } from './dom.js';
import { call } from './wire.js';

const PAGE_SIZES = [5, 10, 20, 50, 100];
const DEFAULT_SIZE = 20;

function choice(label, values, onChange) {
  const select = el(
    'select',
    { on: { change: onChange } },
    ...values.map(([value, text]) => el('option', { value, text })),
  );
  return { select, label: el('label', { class: 'choice' }, el('span', { text: label }), select) };
}

export class List {
  /**
   * `path`; `things` (their plural); `statuses` (none: no filter); `size` of a page at first;
   * `columns`: [class, heading, cell(item) → nodes]; `empty`: what to say when there are none;
   * `seen(items)`: told of every page.
   */
  constructor({ path, things, statuses = [], size = DEFAULT_SIZE, columns, empty, seen = () => {} }) {
    Object.assign(this, { path, things, columns, empty, seen });
    this.items = [];
    this.isFirst = true;
    this.asked = 0;
    this.current = undefined;
    this.next = undefined;
    const reload = () => this.first();
    this.status = choice('Status', [['', 'All'], ...statuses.map((status) => [status, status])], reload);
    this.size = choice(
      'Page size',
      PAGE_SIZES.map((size) => [size, String(size)]),
      reload,
    );
    this.size.select.value = String(size);
    this.firstButton = sendButton('First page', reload, { class: 'quiet' });
    this.nextButton = sendButton('Next page', () => this.load(this.next), { class: 'quiet' });
    this.position = el('p', { class: 'muted position' });
    this.rows = el('tbody', { role: 'rowgroup' });
    this.table = el('table', { role: 'table', 'aria-label': things, hidden: true }, this.#head(), this.rows);
    this.state = el('div', {});
    this.element = el(
      'div',
      { class: 'list' },
      el(
        'div',
        { class: 'toolbar' },
        statuses.length > 0 ? this.status.label : undefined,
        this.size.label,
        sendButton('Reload', () => this.#reload(), { class: 'quiet' }),
      ),
      this.table,
      this.state,
      el('div', { class: 'pager' }, this.firstButton, this.nextButton, this.position),
    );
    this.#drawPager();
  }

  #head() {
    const cells = this.columns.map(([name, heading]) =>
      el('th', { scope: 'col', role: 'columnheader', class: name, text: heading }),
    );
    return el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...cells));
  }

  /** The first page under the filter and size that are chosen. */
  first() {
    const query = new URLSearchParams({ limit: this.size.select.value });
    if (this.status.select.value !== '') query.set('status', this.status.select.value);
    return this.load(`${this.path}?${query}`, true);
  }

  /** The page that begins after this id, whatever the status. */
  after(id) {
    this.status.select.value = '';
    return this.load(`${this.path}?limit=${this.size.select.value}&after=${id}`);
  }

  /** Reads the first page, if none was read and none is on its way. */
  async fill() {
    if (this.current === undefined && !this.element.hasAttribute('aria-busy')) await this.first();
  }

  async load(url, isFirst = false) {
    const asked = ++this.asked;
    const wanted = { status: this.status.select.value, size: this.size.select.value };
    this.element.setAttribute('aria-busy', 'true');
    if (this.items.length === 0) this.state.replaceChildren(el('p', { class: 'state loading', text: 'Loading…' }));
    const reply = await call('GET', url);
    if (asked !== this.asked) return; // overtaken by a later one
    this.element.removeAttribute('aria-busy');
    if (!reply?.ok) {
      const why = reply?.message ?? 'Not sent: the service asked to wait.';
      return this.#fail(why, () => {
        this.#choose(wanted);
        return this.load(url, isFirst);
      });
    }
    Object.assign(this, { current: url, isFirst, items: reply.value, next: reply.next });
    this.chosen = wanted;
    this.seen(this.items);
    this.draw();
    if (this.element.checkVisibility()) announce(`${this.items.length} ${this.things}. ${this.position.textContent}`);
  }

  #reload() {
    return this.current === undefined ? this.first() : this.load(this.current, this.isFirst);
  }

  #choose({ status, size }) {
    this.status.select.value = status;
    this.size.select.value = size;
  }

  /** What was shown stays, and so do the choices that it was read by. */
  #fail(message, retry) {
    if (this.chosen !== undefined) this.#choose(this.chosen);
    this.state.replaceChildren(problem(message, retry));
  }

  clear() {
    this.asked++;
    this.element.removeAttribute('aria-busy');
    Object.assign(this, { items: [], next: undefined, isFirst: true, current: undefined, chosen: undefined });
    this.draw();
    this.state.replaceChildren();
  }

  /** Something new at the end: shown if this page is where it belongs and has room. */
  append(item) {
    const { status } = item;
    const wanted = this.status.select.value;
    const fits =
      this.current !== undefined && this.next === undefined && this.items.length < Number(this.size.select.value);
    if (!fits || (wanted !== '' && wanted !== status)) return false;
    this.items.push(item);
    this.draw();
    return true;
  }

  draw() {
    this.drawRows();
    const none = this.status.select.value === '' ? this.empty : `No ${this.things} are ${this.status.select.value}.`;
    this.state.replaceChildren(...(this.items.length === 0 ? [el('p', { class: 'state', text: none })] : []));
    this.#drawPager();
  }

  /** The rows alone: something that they show has changed, or become known. */
  drawRows() {
    this.rows.replaceChildren(...this.items.map((item) => this.#row(item)));
    this.table.hidden = this.items.length === 0;
  }

  #row(item) {
    const cells = this.columns.map(([name, , cell]) => el('td', { role: 'cell', class: name }, ...cell(item)));
    return el('tr', { role: 'row', tabindex: -1, 'data-id': item.id }, ...cells);
  }

  /** Draws again; the focus stays in the row, where its button may have become another one. */
  refresh(id) {
    this.drawRows();
    const row = [...this.rows.children].find((one) => one.dataset.id === String(id));
    (row?.querySelector('button') ?? row)?.focus();
  }

  #drawPager() {
    this.firstButton.hidden = this.isFirst;
    this.nextButton.hidden = this.next === undefined;
    const [first, last] = [this.items[0], this.items.at(-1)];
    const follows = this.next === undefined ? 'the last' : 'more follow';
    this.position.textContent = last === undefined ? '' : `Ids ${first.id} to ${last.id} · ${follows}`;
  }
}
