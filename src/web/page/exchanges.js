/** The last requests and their replies, whole, each also as a line for the shell. */
import { announce, badge, byId, copy, el } from './dom.js';
import { indented } from './json.js';
import { bus, curlLine, KEY_VARIABLE, MAX_EXCHANGES, wire } from './wire.js';

const entries = new WeakMap();

const keyShown = () => byId('exchange-key').checked;
const classOf = (status) => (status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good');

function message(first, headers, body) {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [first, ...lines].join('\n') + (body ? `\n\n${indented(body)}` : '');
}

function block(title, text) {
  return [el('h3', { text: title }), el('pre', { tabindex: 0, 'aria-label': title, role: 'region', text })];
}

function details(exchange) {
  const key = keyShown() ? wire.key : undefined;
  const { method, path, sent, body, status, phrase, received, text, failure } = exchange;
  const shown = Object.entries({ Authorization: `Bearer ${key ?? KEY_VARIABLE}`, ...sent });
  const line = curlLine(exchange, key);
  const button = el('button', { type: 'button', class: 'quiet small', text: 'Copy' });
  button.addEventListener('click', async () => {
    const done = await copy(line);
    button.textContent = done ? 'Copied' : 'Select and copy';
    announce(done ? 'The curl line is copied.' : 'Copying is not allowed here; select the line instead.');
  });
  return [
    el(
      'div',
      { class: 'curl' },
      el('pre', { tabindex: 0, role: 'region', 'aria-label': 'As a curl line', text: line }),
      button,
    ),
    ...block('Request', message(`${method} ${path} HTTP/1.1`, shown, body)),
    ...block('Reply', failure ?? message(`HTTP/1.1 ${status} ${phrase}`, received, text)),
  ];
}

function entry(exchange) {
  const { method, path, status, ms, at } = exchange;
  const content = el('div', { class: 'exchange' });
  const summary = el(
    'summary',
    {},
    badge(status === 0 ? 'failed' : String(status), classOf(status)),
    el('span', { class: 'target' }, el('b', { text: method }), ` ${path}`),
    el('span', { class: 'muted time', text: `${Math.round(ms)} ms · ${at.toLocaleTimeString()}` }),
  );
  const item = el('details', {}, summary, content);
  // Filled when it is looked at: most never are.
  const fill = () => content.replaceChildren(...(item.open ? details(exchange) : []));
  item.addEventListener('toggle', fill);
  return el('li', {}, item);
}

/** What is shown stays in its place, with the focus and what is open: new ones come before it, old ones go. */
function drawExchanges() {
  const list = byId('exchange-list');
  const shown = wire.exchanges.map((exchange) => {
    if (!entries.has(exchange)) entries.set(exchange, entry(exchange));
    return entries.get(exchange);
  });
  for (const item of [...list.children]) if (!shown.includes(item)) item.remove();
  list.prepend(...shown.filter((item) => !item.isConnected));
  byId('exchange-none').hidden = shown.length > 0;
}

export function startExchanges() {
  byId('exchange-note').textContent = `The last ${MAX_EXCHANGES}, newest first.`;
  byId('exchange-key').addEventListener('change', () => {
    for (const item of byId('exchange-list').querySelectorAll('details')) item.dispatchEvent(new Event('toggle'));
  });
  bus.addEventListener('exchange', drawExchanges);
  drawExchanges();
}
