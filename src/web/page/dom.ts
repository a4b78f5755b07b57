/** Makes the elements of the page: data becomes text, never markup. And keeps the focus where it belongs. */

/** `props`: `text`, `on` (event → listener), and attributes; one that is undefined or false is left out. */
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
export const badge = (text, kind = text) => el('span', { class: `badge ${kind}`, text });
export const state = (text) => el('p', { class: 'state', text });
export const block = (label, text) => el('pre', { tabindex: 0, role: 'region', 'aria-label': label, text });

/**
 * A button that ignores the second click of a double click, since another button may have taken the place of the first,
 * and a press while the one before is under way. Without `press` it submits its form.
 */
export function button(text, press, props = {}) {
  let isBusy = false;
  const click = async (event) => {
    if (event.currentTarget.ariaDisabled || isBusy || event.detail > 1) return event.preventDefault();
    isBusy = true;
    try {
      await press?.(event);
    } finally {
      isBusy = false;
    }
  };
  return el('button', { type: press === undefined ? 'submit' : 'button', text, on: { click }, ...props });
}

/** A button that makes a request. It is disabled while no request may be sent. */
export function sendButton(text, press, props = {}) {
  const made = button(text, press, { 'data-sends': true, ...props });
  queueMicrotask(() => disableWhileWaiting(made)); // when it is in the page
  return made;
}

/** Not a button of the lab, which can end the wait and has a limit of its own. */
export function disableWhileWaiting(one) {
  const isDisabled = document.body.dataset.waiting !== undefined && one.closest('#lab, .of-lab') === null;
  if (isDisabled) one.setAttribute('aria-disabled', 'true');
  else one.removeAttribute('aria-disabled');
}

/** A key held down repeats its press, also on a button that takes the place of the first: only the first counts. */
export function ignoreHeldKeys() {
  const ignore = (event) => {
    const presses = event.key === 'Enter' && event.target.closest('button, summary, a, input') !== null;
    if (event.repeat && presses) event.preventDefault();
  };
  addEventListener('keydown', ignore, true);
}

/** The heading of the view that is shown. */
export const viewHeading = () => document.querySelector('main section:not([hidden]) h2');

const identityOf = (one) => one.id || one.ariaLabel || one.textContent;

/**
 * Replaces the content of a box. The focus, if it was in there, goes to the same control in the new content; or to the
 * row of the same item, its first button if it has one; or to the last button there is; or else to `otherwise`.
 */
export function redraw(box, nodes, otherwise = viewHeading()) {
  const focused = document.activeElement;
  const isInside = focused !== box && box.contains(focused);
  const id = focused.closest('[data-id]')?.dataset.id;
  box.replaceChildren(...nodes);
  if (!isInside) return;
  const all = [...box.querySelectorAll('a, button, summary, [tabindex]')];
  const same = all.find((one) => identityOf(one) === identityOf(focused));
  const question = all.find(({ ariaLabel }) => ariaLabel && focused.ariaLabel?.startsWith(`${ariaLabel}?`));
  const row = id && all.find((one) => one.dataset.id === id);
  const last = all.findLast(({ tagName }) => tagName === 'BUTTON');
  const next = same ?? question ?? (row ? (row.querySelector('button') ?? row) : (last ?? otherwise));
  next?.focus({ preventScroll: true });
}

/** Whether the focus is in there, or nowhere: then it may be moved. */
export const mayFocus = (element) =>
  document.activeElement === document.body || element.contains(document.activeElement);

/**
 * A button that asks for confirmation in its own place and that of its neighbours. The focus is on the answer that
 * changes nothing; that and Escape put the buttons back. `answers`: [text, act].
 */
export function confirmButton(text, label, no, answers, props = {}) {
  const labelled = (words) => ({ class: 'small', 'aria-label': label && `${label}? ${words}` });
  const press = ({ currentTarget }) => {
    const box = currentTarget.parentElement;
    const before = [...box.childNodes];
    const restore = () => redraw(box, before);
    const yes = answers.map(([words, act]) => {
      const answer = async () => {
        await act();
        if (box.contains(group)) restore();
      };
      return sendButton(words, answer, labelled(words));
    });
    const stay = button(no, restore, labelled(no));
    const leave = ({ key }) => key === 'Escape' && restore();
    const props = { class: 'actions', role: 'group', 'aria-label': `${label ?? text}?`, on: { keydown: leave } };
    const group = el('span', props, stay, ...yes);
    box.replaceChildren(group);
    stay.focus();
  };
  return button(text, press, { 'aria-label': label, ...props });
}

/** Announces a change to screen readers, once. */
export function announce(text) {
  byId('live').textContent = text;
}

/** Shows the result of an action in its note, and announces it. `parts`: texts and elements. */
export function report(note, parts, isBad = false) {
  note.replaceChildren(...[parts].flat());
  note.classList.toggle('bad', isBad);
  announce(note.textContent);
}

/** Text with `code` and **bold**: nothing else of Markdown. */
export const inline = (text) =>
  text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part.startsWith('`')) return el('code', { text: part.slice(1, -1) });
    return part.startsWith('**') ? el('strong', { text: part.slice(2, -2) }) : part;
  });

/** A name within a sentence, without marks of direction: the words and numbers beside it stay where they are. */
export const nameIn = (name) =>
  el('bdi', { text: name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '') });

/** Of a key that is refused the key's own box says why. */
export function problem(message, retry, status) {
  if (status === 401) return state('Enter a valid key under “API key”.');
  return el('div', { class: 'state bad' }, el('p', { text: message }), sendButton('Try again', retry));
}

/** `columns`: [class, heading]. The roles are explicit: on a phone the cells are not laid out as a table. */
export function table(label, columns, rows = []) {
  const heads = columns.map(([name, text]) => el('th', { scope: 'col', role: 'columnheader', class: name, text }));
  const head = el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads));
  return el('table', { role: 'table', 'aria-label': label }, head, el('tbody', { role: 'rowgroup' }, ...rows));
}

/** `cells`: the node or nodes of each column. */
export function row(columns, cells, props = {}) {
  const all = cells.map((nodes, at) => el('td', { role: 'cell', class: columns[at][0] }, ...[nodes].flat()));
  return el('tr', { role: 'row', ...props }, ...all);
}

/** `0:37`, `23:59:05`. */
export function duration(seconds) {
  const two = (value) => String(value).padStart(2, '0');
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
