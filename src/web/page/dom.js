/** What data becomes on the page: elements and text, never markup. */

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

/** A button that makes a request: it waits while requests are not admitted. */
export function sendButton(text, onClick, props = {}) {
  const disabled = document.body.dataset.waiting === undefined ? undefined : 'true';
  const on = onClick === undefined ? undefined : { click: onClick };
  const type = onClick === undefined ? 'submit' : 'button';
  return el('button', { type, 'data-sends': true, 'aria-disabled': disabled, text, ...(on && { on }), ...props });
}

/** Said once to who cannot see what changed. */
export function announce(text) {
  byId('live').textContent = text;
}

export const badge = (text, kind = text) => el('span', { class: `badge ${kind}`, text });

export function problem(message, retry) {
  return el(
    'div',
    { class: 'state problem' },
    el('p', { text: message }),
    retry && sendButton('Try again', retry, { class: 'quiet' }),
  );
}

/** `0:37`, `23 h 59 min`. */
export function duration(seconds) {
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // no permission, or not a secure context: the text can still be selected
  }
}
