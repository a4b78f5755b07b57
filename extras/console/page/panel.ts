/** The side of the page: the key, the windows, and the banner while nothing may be sent. */
import { announce, badge, byId, disableWhileWaiting, duration, el } from './dom.ts';
import { endWait, hear, secondsLeft, setKey, type Wait, type Window, wire } from './wire.ts';

const TITLES: Record<string, string> = {
  minute: 'Left this minute',
  day: 'Left this day',
  address: 'Left for your address',
};
const STANDING = {
  none: ['No key yet', ''],
  unknown: ['Not tried yet', ''],
  accepted: ['Accepted', 'good'],
  onlyReads: ['Accepted, only reads', 'good'],
  refused: ['Refused', 'bad'],
};

/** The pasted text may be all that `keys create` printed, its lines joined. */
const keyIn = (text: string) => /ps_(?:live|test)_\w+/.exec(text)?.[0] ?? text.trim();

const keyInput = () => byId<HTMLInputElement>('key-input');

function startKey(): void {
  const input = keyInput();
  input.value = wire.key;
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const key = keyIn(input.value);
    if (key === '') return refuseEmpty(input);
    input.value = key;
    const mayEndEarly = wire.wait?.code === 'key_banned'; // the operator can lift a ban, and asking during one costs nothing
    if (key === wire.key && wire.wait !== undefined && !mayEndEarly)
      return announce('This key waits: the banner says how long.');
    setKey(key);
  });
  byId('key-forget').addEventListener('click', () => {
    input.value = '';
    setKey('');
    announce('The key is forgotten.');
    input.focus();
  });
}

/** A key in use is forgotten by its own button alone. */
function refuseEmpty(input: HTMLInputElement): void {
  const text = 'Paste a key here first.';
  byId('key-refusal').textContent = text;
  input.setAttribute('aria-invalid', 'true');
  announce(text);
  input.focus();
}

/** An accepted key has its form closed: the standing alone is of interest then. */
function drawKey(): void {
  const standing = byId('key-standing');
  const [text, kind] = STANDING[wire.standing];
  if (standing.textContent !== text) {
    standing.textContent = text;
    byId<HTMLDetailsElement>('key').open = !wire.isAccepted;
  }
  standing.className = `badge ${kind}`;
  byId('key-refusal').textContent = wire.refusal;
  keyInput().setAttribute('aria-invalid', String(wire.standing === 'refused'));
  byId('key-forget').hidden = wire.key === '';
}

function gauge(window: Window): HTMLElement {
  const { name, limit } = window;
  const title = TITLES[name] ?? name;
  const seconds = secondsLeft(window);
  const left = seconds === 0 ? limit : window.left;
  const count = `${left.toLocaleString('en')} of ${limit.toLocaleString('en')}`;
  const meter = { min: 0, max: limit, low: limit * 0.15, high: limit * 0.5, optimum: limit, value: left };
  return el(
    'div',
    { 'data-window': name },
    el('p', { text: title }),
    el('p', { text: count }),
    el('meter', { 'aria-label': title, ...meter }),
    el('p', { class: 'hint', text: seconds > 0 ? `Full again in ${duration(seconds)}` : 'Full' }),
  );
}

function drawGauges(): void {
  byId('gauges').replaceChildren(...wire.windows.map(gauge));
  byId('limits').hidden = wire.windows.length === 0;
}

/** The title and text of a wait. The service's message, without the time that it names: the countdown shows that. */
function waitWords({ status, code, message }: Wait): [title: string, text: string] {
  const cause = message.replace(/[;,.]?[^;,.]*\bin \d+ s\b.*$/s, '');
  const text = `${cause.slice(0, 1).toUpperCase()}${cause.slice(1)}. This page sends nothing meanwhile, and goes on by itself.`;
  if (status === 503) return ['The service is not available for a moment', text];
  if (code !== 'key_banned') return ['The service asks to wait', text];
  return ['This key is banned', `${text} Whoever runs the service can end it: press “Use key” then.`];
}

const countdown = el('p', { class: 'countdown', role: 'timer', 'aria-live': 'off' });

function banner(wait: Wait): HTMLElement[] {
  const [title, text] = waitWords(wait);
  const heading = el('p', { class: 'title' }, badge(String(wait.status), 'bad'), ` ${title}`);
  return [el('div', { role: 'alert' }, heading, el('p', { class: 'hint', text })), countdown];
}

function drawBanner(): void {
  const { wait } = wire;
  const box = byId('banner');
  document.body.toggleAttribute('data-waiting', wait !== undefined);
  for (const one of document.querySelectorAll('[data-sends]')) disableWhileWaiting(one);
  box.className = `banner ${wait?.code === 'key_banned' ? 'bad' : 'warn'}`;
  box.replaceChildren(...(wait ? banner(wait) : []));
  box.hidden = wait === undefined;
  tick();
}

function tick(): void {
  drawGauges();
  if (wire.wait === undefined) return;
  const left = secondsLeft(wire.wait);
  countdown.textContent = duration(left);
  if (left > 0) return;
  endWait();
  announce('You can go on.');
}

export function startPanel(): void {
  startKey();
  hear('key', drawKey);
  hear('wait', drawBanner);
  hear('windows', drawGauges);
  drawKey();
  drawBanner();
  setInterval(tick, 1000);
}
