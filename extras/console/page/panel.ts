/** The side of the page: the key, the windows, and the banner while nothing may be sent. */
import { announce, badge, button, byId, disableWhileWaiting, duration, el, sendButton } from './dom.ts';
import { emit, endWait, hear, secondsLeft, setKey, type Wait, type Window, wire } from './wire.ts';

const TITLES: Record<string, string> = {
  minute: 'Left this minute',
  day: 'Left this day',
  address: 'Left for your address',
};
const STANDING = {
  none: ['No key yet', ''],
  unknown: ['Not tried yet', ''],
  accepted: ['Accepted', 'good'],
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
    if (key === wire.key && wire.wait !== undefined) return announce('This key waits: the banner says how long.');
    setKey(key);
    emit('start');
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
  const box = byId<HTMLDetailsElement>('key');
  const standing = byId('key-standing');
  const isWaiting = wire.wait !== undefined && wire.standing === 'unknown'; // after a reload
  const [text, kind] = wire.isSilent ? ['No reply', 'bad'] : isWaiting ? ['Waiting', ''] : STANDING[wire.standing];
  const isNews = standing.textContent !== text;
  if (isNews && wire.standing !== 'accepted') box.open = true;
  else if (isNews && !wire.isSilent) box.open = false;
  if (isNews) standing.textContent = text;
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
function waitWords({ status, code, message }: Wait): [title: string, text: (string | Node)[]] {
  const cause = message.replace(/[;,.]?[^;,.]*\bin \d+ s\b.*$/s, '');
  const text = `${cause.slice(0, 1).toUpperCase()}${cause.slice(1)}. This page sends nothing meanwhile, and goes on by itself.`;
  if (status === 503) return ['The service is not available for a moment', [text]];
  if (code !== 'key_banned') return ['The service asks to wait', [text]];
  const lift = el('code', { text: document.body.dataset.lift });
  return ['This key is banned', [text, ' The operator can end it (keys list shows its ID): ', lift]];
}

let countdown: HTMLElement | undefined;

function waitBanner(wait: Wait): HTMLElement[] {
  const [title, text] = waitWords(wait);
  countdown = el('p', { class: 'countdown', role: 'timer', 'aria-live': 'off' });
  const look = () => {
    endWait();
    emit('retry');
  };
  const check = wait.code === 'key_banned' ? button('Check now', look, { class: 'small' }) : undefined;
  const heading = el('p', { class: 'title' }, badge(String(wait.status), 'bad'), ` ${title}`);
  return [el('div', { role: 'alert' }, heading, el('p', { class: 'hint' }, ...text)), el('div', {}, countdown, check)];
}

/** Requests stay allowed while the service does not answer: the next one may be answered. */
function silenceBanner(): HTMLElement[] {
  const title = el('p', { class: 'title', text: 'The service does not answer' });
  const text = 'It may have stopped, or the network is down. This page may be out of date.';
  const retry = sendButton('Try again', () => emit('retry'), { class: 'small' });
  return [el('div', { role: 'alert' }, title, el('p', { class: 'hint', text })), retry];
}

/** A wait is more important than silence. */
function drawBanner(): void {
  const { wait, isSilent } = wire;
  const box = byId('banner');
  document.body.toggleAttribute('data-waiting', wait !== undefined);
  for (const one of document.querySelectorAll('[data-sends]')) disableWhileWaiting(one);
  countdown = undefined;
  box.className = `banner ${wait?.code === 'key_banned' ? 'bad' : 'warn'}`;
  box.replaceChildren(...(wait ? waitBanner(wait) : isSilent ? silenceBanner() : []));
  box.hidden = !box.hasChildNodes();
  document.body.toggleAttribute('data-banner', !box.hidden);
  tick();
}

function tick(): void {
  drawGauges();
  if (countdown === undefined || wire.wait === undefined) return;
  const left = secondsLeft(wire.wait);
  countdown.textContent = duration(left);
  if (left > 0) return;
  endWait();
  announce('You can go on.');
  emit('resume');
}

export function startPanel(): void {
  startKey();
  hear(['key', 'silence', 'wait'], drawKey);
  hear(['wait', 'silence'], drawBanner);
  hear(['windows'], drawGauges);
  drawKey();
  drawBanner();
  setInterval(tick, 1000);
}
