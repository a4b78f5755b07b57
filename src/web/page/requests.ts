/** The last requests and their replies, each also as a line for the shell. */
import { announce, badge, block, button, byId, el } from './dom.js';
import { indented } from './json.js';
import { bus, curlLine, MAX_EXCHANGES, requestHeaders, wire } from './wire.js';

const entries = new WeakMap();

const showsKey = () => byId('exchange-key').checked;
const kindOf = (status) => (status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good');
export const statusBadge = (status) => badge(status === 0 ? 'failed' : String(status), kindOf(status));

/** A message as it is read: first its body, then its headers, folded. `name`: Request or Reply. */
export function message(name, firstLine, headers, body) {
  const lines = [firstLine, ...headers.map(([header, value]) => `${header}: ${value}`)].join('\n');
  const fold = el('details', {}, el('summary', { class: 'fold', text: `${firstLine} · headers: ${headers.length}` }));
  fold.append(block(`${name}, its headers`, lines));
  return [...(body ? [block(name, indented(body))] : []), fold];
}

export function replyTo({ status, phrase, received, text, failure }, name = 'Reply') {
  return failure ? [block(name, failure)] : message(name, `HTTP/1.1 ${status} ${phrase}`, received, text);
}

function details(exchange) {
  const { method, path, body } = exchange;
  const line = curlLine(exchange, showsKey());
  const copy = async ({ currentTarget }) => {
    // Without permission, or in a context that is not secure, the text can still be selected.
    const isDone = await navigator.clipboard?.writeText(line).then(() => true, () => false); // biome-ignore format: short
    currentTarget.textContent = isDone ? 'Copied' : 'Select and copy';
    announce(isDone ? 'The curl line is copied.' : 'Copying is not allowed here; select the line instead.');
  };
  const headers = Object.entries(requestHeaders(exchange, showsKey()));
  return [
    el('h3', { text: 'Reply' }),
    ...replyTo(exchange),
    el('h3', { text: 'Request' }),
    ...message('Request', `${method} ${path} HTTP/1.1`, headers, body),
    el('h3', { text: 'For the shell' }),
    el('div', { class: 'curl' }, block('As a curl line', line), button('Copy', copy, { class: 'small' })),
  ];
}

function entry(exchange) {
  const { method, path, status, ms, at } = exchange;
  const content = el('div', { class: 'exchange' });
  const target = el('span', { class: 'target' }, el('b', { text: method }), ` ${path}`);
  const took = el('span', { class: 'hint', text: `${Math.round(ms)} ms · ${at.toLocaleTimeString()}` });
  const item = el('details', {}, el('summary', { class: 'entry' }, statusBadge(status), target, took), content);
  // Filled when it is opened: most never are.
  item.addEventListener('toggle', () => content.replaceChildren(...(item.open ? details(exchange) : [])));
  return el('li', {}, item);
}

/** Adds new entries on top and removes old ones. The others stay, open or closed; the focus stays in the list. */
function drawExchanges() {
  const list = byId('exchange-list');
  const hadFocus = list.contains(document.activeElement);
  const shown = wire.exchanges.map((exchange) => {
    if (!entries.has(exchange)) entries.set(exchange, entry(exchange));
    return entries.get(exchange);
  });
  for (const item of [...list.children]) if (!shown.includes(item)) item.remove();
  list.prepend(...shown.filter((item) => !item.isConnected));
  const [newest] = wire.exchanges;
  byId('exchange-newest').textContent = newest ? `${newest.method} ${newest.status || 'failed'}` : 'none yet';
  byId('exchange-note').textContent = `The last ${MAX_EXCHANGES}, newest first.`;
  if (hadFocus && document.activeElement === document.body) {
    (list.lastElementChild?.querySelector('summary') ?? byId('exchange-key')).focus({ preventScroll: true });
  }
}

export function startRequests() {
  byId('requests').open = matchMedia('(width >= 64rem)').matches; // on a phone it stands above the view, as one line
  byId('exchange-key').addEventListener('change', () => {
    for (const item of byId('exchange-list').querySelectorAll('li > details')) item.dispatchEvent(new Event('toggle'));
  });
  bus.addEventListener('exchange', drawExchanges);
  drawExchanges();
}
