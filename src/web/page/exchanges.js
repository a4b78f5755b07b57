/** The last requests and their replies in full, each also as a line for the shell. */
import { announce, badge, block, button, byId, copy, el, holdFocus } from './dom.js';
import { indented } from './json.js';
import { bus, curlLine, MAX_EXCHANGES, requestHeaders, wire } from './wire.js';

const entries = new WeakMap();

const showsKey = () => byId('exchange-key').checked;
export const statusBadge = (status) =>
  badge(
    status === 0 ? 'failed' : String(status),
    status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good',
  );

function message(first, headers, body) {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [first, ...lines].join('\n') + (body ? `\n\n${indented(body)}` : '');
}

export function replyText({ status, phrase, received, text, failure }) {
  return failure ?? message(`HTTP/1.1 ${status} ${phrase}`, received, text);
}

function details(exchange) {
  const { method, path, body } = exchange;
  const line = curlLine(exchange, showsKey());
  const copying = button(
    'Copy',
    async () => {
      const done = await copy(line);
      copying.textContent = done ? 'Copied' : 'Select and copy';
      announce(done ? 'The curl line is copied.' : 'Copying is not allowed here; select the line instead.');
    },
    { class: 'small' },
  );
  const headers = Object.entries(requestHeaders(exchange, showsKey()));
  return [
    el('div', { class: 'curl' }, block('As a curl line', line), copying),
    el('h3', { text: 'Request' }),
    block('Request', message(`${method} ${path} HTTP/1.1`, headers, body)),
    el('h3', { text: 'Reply' }),
    block('Reply', replyText(exchange)),
  ];
}

function entry(exchange) {
  const { method, path, status, ms, at } = exchange;
  const content = el('div', { class: 'exchange' });
  const summary = el(
    'summary',
    {},
    statusBadge(status),
    el('span', { class: 'target' }, el('b', { text: method }), ` ${path}`),
    el('span', { class: 'hint', text: `${Math.round(ms)} ms · ${at.toLocaleTimeString()}` }),
  );
  const item = el('details', {}, summary, content);
  // Filled when it is opened: most never are.
  item.addEventListener('toggle', () => content.replaceChildren(...(item.open ? details(exchange) : [])));
  return el('li', {}, item);
}

/** Adds new entries on top and removes old ones. The others stay in place, with the focus, open or closed; from a removed one it goes to the oldest. */
function drawExchanges() {
  const list = byId('exchange-list');
  const back = holdFocus();
  const shown = wire.exchanges.map((exchange) => {
    if (!entries.has(exchange)) entries.set(exchange, entry(exchange));
    return entries.get(exchange);
  });
  for (const item of [...list.children]) if (!shown.includes(item)) item.remove();
  list.prepend(...shown.filter((item) => !item.isConnected));
  byId('exchange-note').textContent = shown.length > 0 ? `The last ${MAX_EXCHANGES}, newest first.` : 'None yet.';
  back(list.lastElementChild?.querySelector('summary'), byId('exchange-key'));
}

export function startExchanges() {
  byId('exchange-key').addEventListener('change', () => {
    for (const item of byId('exchange-list').querySelectorAll('details')) item.dispatchEvent(new Event('toggle'));
  });
  bus.addEventListener('exchange', drawExchanges);
  drawExchanges();
}
