/** Makes the elements of the page: data becomes text, never markup. */

type Listeners = { [E in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[E]) => unknown };
/** `text`, and attributes: one that is undefined or false is left out. */
export interface Props {
  on?: Listeners;
  [attribute: string]: string | number | boolean | undefined | Listeners;
}
export type Child = Node | string;
export type Content = Child | Child[];

export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  { text, on = {}, ...attributes }: Props = {},
  ...children: (Child | undefined)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = String(text);
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener as EventListener);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** Of an element that page.html has, of the kind that it has there. */
export const byId = <E extends HTMLElement = HTMLElement>(id: string): E => document.getElementById(id) as E;
export const badge = (text: string, kind = text) => el('span', { class: `badge ${kind}`, text });
export const state = (text: string) => el('p', { class: 'state', text });
export const block = (label: string, text: string) =>
  el('pre', { tabindex: 0, role: 'region', 'aria-label': label, text });

/** The second click of a double click does nothing: another button or link may have taken the place of the first. */
export function ignoreSecondClicks(): void {
  const ignore = (event: MouseEvent) => {
    if (event.detail < 2 || !(event.target as Element).closest('a, button')) return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener('click', ignore, { capture: true });
}

type Press = (pressed: HTMLButtonElement) => unknown;

/** A button that ignores a press while the one before is under way. Without `press` it submits its form. */
export function button(text: string, press?: Press, props: Props = {}): HTMLButtonElement {
  const click = async (event: MouseEvent) => {
    if (made.ariaDisabled || made.ariaBusy) return event.preventDefault();
    made.ariaBusy = 'true';
    try {
      await press?.(made);
    } finally {
      made.ariaBusy = null;
    }
  };
  const made = el('button', { type: press === undefined ? 'submit' : 'button', text, on: { click }, ...props });
  return made;
}

/** A button that makes a request. It is disabled while no request may be sent. */
export function sendButton(text: string, press?: Press, props: Props = {}): HTMLButtonElement {
  const made = button(text, press, { 'data-sends': true, ...props });
  queueMicrotask(() => disableWhileWaiting(made)); // when it is in the page
  return made;
}

export function disableWhileWaiting(one: Element): void {
  if ('waiting' in document.body.dataset) one.setAttribute('aria-disabled', 'true');
  else one.removeAttribute('aria-disabled');
}

/** Announces a change to screen readers, once. */
export function announce(text: string): void {
  byId('live').textContent = text;
}

/** Shows the result of an action in its note, and announces it. */
export function report(note: Element, parts: Content, isBad = false): void {
  note.replaceChildren(...[parts].flat());
  note.classList.toggle('bad', isBad);
  announce(note.textContent ?? '');
}

/** A name within a sentence, without marks of direction: the words and numbers beside it stay where they are. */
export const nameIn = (name: string) =>
  el('bdi', { text: name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '') });

/** Of a key that is refused the key's own box says why. */
export function problem(message: string, retry: Press, status?: number): HTMLElement {
  if (status === 401) return state('Enter a valid key under “API key”.');
  return el('div', { class: 'state bad' }, el('p', { text: message }), sendButton('Try again', retry));
}

/** The class of a column, and its heading. */
export type Column = readonly [name: string, heading: string, ...unknown[]];

/** The roles are explicit: on a phone the cells are not laid out as a table. */
export function table(label: string, columns: readonly Column[]) {
  const heads = columns.map(([name, text]) => el('th', { scope: 'col', role: 'columnheader', class: name, text }));
  const head = el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads));
  return el('table', { role: 'table', 'aria-label': label }, head, el('tbody', { role: 'rowgroup' }));
}

export function row(columns: readonly Column[], cells: Content[], props: Props = {}) {
  const all = cells.map((nodes, at) => el('td', { role: 'cell', class: columns[at][0] }, ...[nodes].flat()));
  return el('tr', { role: 'row', ...props }, ...all);
}

/** `0:37`, `23:59:05`. */
export function duration(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
