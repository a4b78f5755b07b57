/** Makes the elements of the page: data becomes text, never markup. */

/** `props`: `class`, `text`, `on` (event → listener), and attributes; one that is undefined or false is left out. */
export function el(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (name === 'text') element.textContent = value;
    else if (name === 'on')
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

export const button = (text, click, props = {}) => el('button', { type: 'button', text, on: { click }, ...props });

/** The second click of a double click is ignored: another button may have taken the place of the first one. */
export const isSecondClick = (event) => event.detail > 1;

/** Whether the focus is in there, or nowhere: then it may be moved. Who has gone on elsewhere keeps it. */
export const mayFocus = (element) =>
  document.activeElement === document.body || element.contains(document.activeElement);

/**
 * To be called before a change that may take the focused element away. The result, called afterwards, puts the focus
 * back on it, or on the first of `others` that can be seen; not if the user has put it elsewhere meanwhile.
 */
export function holdFocus() {
  const held = document.activeElement;
  return (...others) => {
    const now = document.activeElement;
    if (held === document.body || (now !== document.body && now.checkVisibility())) return;
    const next = [held, ...others].find((one) => one?.isConnected && one.checkVisibility());
    next?.focus({ preventScroll: true });
  };
}

/** The heading of the view that is shown. */
export const viewHeading = () => document.querySelector('main section:not([hidden]) h2');

/** For a press that must not count twice. */
export const once = (act) => (event) => isSecondClick(event) || act(event);

/** A button that sends is off during a wait; not one of the lab, which can end the wait and has a limit of its own. */
export function setOff(one) {
  const isOff = document.body.dataset.waiting !== undefined && one.closest('#lab, .of-lab') === null;
  if (isOff) one.setAttribute('aria-disabled', 'true');
  else one.removeAttribute('aria-disabled');
}

/**
 * A button that makes a request. It is off while no request may be sent, and while its own is under way. Without
 * `click` it submits its form, once a click.
 */
export function sendButton(text, click, props = {}) {
  let isBusy = false;
  const press = async (event) => {
    if (event.currentTarget.ariaDisabled || isBusy || (!click && isSecondClick(event))) return event.preventDefault();
    isBusy = true;
    try {
      await click?.(event);
    } finally {
      isBusy = false;
    }
  };
  const type = click === undefined ? 'submit' : 'button';
  const made = el('button', { type, text, on: { click: press }, 'data-sends': true, ...props });
  queueMicrotask(() => setOff(made)); // when it has its place on the page
  return made;
}

/** A key held down repeats its press, also on a button that takes the place of the first: only the first counts. */
export function ignoreHeldKeys() {
  const ignore = (event) => {
    const presses = event.key === 'Enter' && event.target.closest('button, summary, a, input') !== null;
    if (event.repeat && presses) event.preventDefault();
  };
  addEventListener('keydown', ignore, true);
}

/**
 * Asks before an action, in place of its buttons: `question` for screen readers, `yes` as the text of the button. The
 * focus is on the other button, which changes nothing; that and Escape call `keep`.
 */
export function ask(place, { question, yes, act, keep }) {
  const small = { class: 'small' };
  const stay = button('No', once(keep), { ...small, 'aria-label': `${question} No` });
  const go = sendButton(yes, once(act), {
    ...small,
    'aria-label': `${question} ${yes}`,
  });
  const leave = ({ key }) => key === 'Escape' && keep();
  place.replaceChildren(el('span', { role: 'group', 'aria-label': question, on: { keydown: leave } }, stay, ' ', go));
  stay.focus();
}

/** Tells a change to screen readers, once. */
export function announce(text) {
  byId('live').textContent = text;
}

/** Shows the result of an action at its place, and announces it. `parts`: texts and elements. */
export function say(note, parts, bad = false) {
  note.replaceChildren(...[parts].flat());
  note.classList.toggle('bad', bad);
  announce(note.textContent);
}

/** Marks of direction, which could turn the sentence around a name. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A name within a sentence: from right to left or not, the words and numbers beside it stay where they are. */
export const nameIn = (name) => el('bdi', { text: name.replace(DIRECTION, '') });

export const badge = (text, kind = text) => el('span', { class: `badge ${kind}`, text });
export const note = () => el('p', { class: 'note' });
export const block = (label, text) => el('pre', { tabindex: 0, role: 'region', 'aria-label': label, text });

export function problem(message, retry) {
  return el('div', { class: 'state bad' }, el('p', { text: message }), retry && sendButton('Try again', retry));
}

/** `columns`: [class, heading]. The roles are explicit: on a phone the cells are not laid out as a table. */
export function table(label, columns, rows = []) {
  const heads = columns.map(([name, text]) => el('th', { scope: 'col', role: 'columnheader', class: name, text }));
  const head = el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads));
  return el('table', { role: 'table', 'aria-label': label }, head, el('tbody', { role: 'rowgroup' }, ...rows));
}

/** `cells`: the nodes of each column. */
export function row(columns, cells, props = {}) {
  const all = cells.map((nodes, at) => el('td', { role: 'cell', class: columns[at][0] }, ...nodes));
  return el('tr', { role: 'row', ...props }, ...all);
}

/** `0:37`, `23:59:05`. */
export function duration(seconds) {
  const two = (value) => String(value).padStart(2, '0');
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no permission, or not a secure context: the text can still be selected
  }
}
