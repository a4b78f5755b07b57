/** The last requests and their replies, each also as a line for the shell. */
import { announce, badge, block, button, byId, el } from './dom.ts';
import { indented } from './json.ts';
import { curlLine, type Exchange, hear, wire } from './wire.ts';

const MAX_EXCHANGES = 20;

const kindOf = (status: number) => (status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good');
const statusBadge = (status: number) => badge(status === 0 ? 'failed' : String(status), kindOf(status));

/** A reply as it is read: first its body, then its headers, folded. */
export function replyTo({ status, phrase, received, text, failure }: Exchange): HTMLElement[] {
  if (failure !== undefined) return [block('Reply', failure)];
  const firstLine = `${status} ${phrase}`.trim(); // HTTP/2 has no phrase
  const headers = received.map(([name, value]) => `${name}: ${value}`).join('\n');
  const fold = el('summary', { class: 'fold', text: `${firstLine} · headers: ${received.length}` });
  const body = text === '' ? [] : [block('Reply', indented(text))];
  return [...body, el('details', {}, fold, block('Reply, its headers', headers))];
}

function details(exchange: Exchange): HTMLElement[] {
  const line = curlLine(exchange);
  const copy = async (pressed: HTMLButtonElement) => {
    // Without permission, or in a context that is not secure, the text can still be selected.
    const copied = navigator.clipboard?.writeText(line).then(() => true);
    const isDone = await copied?.catch(() => false);
    pressed.textContent = isDone ? 'Copied' : 'Select and copy';
    announce(isDone ? 'The curl line is copied.' : 'Copying is not allowed here; select the line instead.');
  };
  return [
    el('h3', { text: 'Reply' }),
    ...replyTo(exchange),
    el('h3', { text: 'Request, for the shell' }),
    el('p', { class: 'muted', text: 'First, with your key: export PETSTORE_KEY=ps_…' }),
    block('As a curl line', line),
    button('Copy', copy, { class: 'small' }),
  ];
}

function entry(exchange: Exchange): HTMLElement {
  const { method, path, status, ms, at } = exchange;
  const content = el('div', { class: 'exchange' });
  const target = el('span', { class: 'target' }, el('b', { text: method }), ` ${path}`);
  const took = el('span', { class: 'hint', text: `${Math.round(ms)} ms · ${at.toLocaleTimeString()}` });
  const item = el('details', {}, el('summary', {}, statusBadge(status), ' ', target, ' ', took), content);
  // Filled when it is opened: most never are.
  item.addEventListener('toggle', () => content.replaceChildren(...(item.open ? details(exchange) : [])));
  return el('li', {}, item);
}

/** Adds the newest entry on top and removes the oldest. The others stay, open or closed. */
function drawExchanges(): void {
  const list = byId('exchange-list');
  const { newest } = wire;
  byId('exchange-newest').textContent = newest ? `${newest.method} ${newest.status || 'failed'}` : 'none yet';
  if (newest === undefined) list.replaceChildren();
  else list.prepend(entry(newest));
  if (list.children.length > MAX_EXCHANGES) list.lastElementChild?.remove();
}

export function startRequests(): void {
  byId<HTMLDetailsElement>('requests').open = matchMedia('(min-width: 64rem)').matches; // on a phone: one line
  hear('exchange', drawExchanges);
  drawExchanges();
}
