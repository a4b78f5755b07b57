/** The side of the page: the key, the windows, and the banner while the service asks to wait. */
import { announce, badge, byId, duration, el } from './dom.js';
import { bus, endWait, setKey, wire } from './wire.js';

const TITLES = { minute: 'This minute', day: 'This day', address: 'Your address' };
const STANDING = {
  none: ['No key yet.', ''],
  unknown: ['Not tried yet.', 'waiting'],
  accepted: ['Accepted by the service.', 'good'],
  refused: ['Refused.', 'bad'],
};

function keyPanel() {
  const input = byId('key-input');
  const show = byId('key-show');
  input.value = wire.key;
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    setKey(input.value.trim());
    if (wire.key !== '') bus.dispatchEvent(new Event('start'));
  });
  show.addEventListener('click', () => {
    const shown = input.type === 'text';
    input.type = shown ? 'password' : 'text';
    show.setAttribute('aria-pressed', String(!shown));
  });
  byId('key-forget').addEventListener('click', () => {
    input.value = '';
    setKey('');
    announce('The key is forgotten.');
    input.focus();
  });
  bus.addEventListener('key', drawStanding);
  drawStanding();
}

function drawStanding() {
  const [text, kind] = STANDING[wire.standing];
  const line = byId('key-standing');
  const said = wire.standing === 'refused' ? `${text} ${wire.refusal}` : text;
  if (line.textContent !== said) line.textContent = said;
  line.className = `standing ${kind}`;
  byId('key-input').setAttribute('aria-invalid', String(wire.standing === 'refused'));
  byId('key-forget').hidden = wire.key === '';
}

function gaugeFoot({ name, banned, endsAt }) {
  const seconds = Math.ceil((endsAt - performance.now()) / 1000);
  if (seconds > 0) return `${banned ? 'Admitted' : 'Full'} again in ${duration(seconds)}`;
  return banned ? 'Known with the next reply' : `The next request begins a new ${name === 'day' ? 'day' : 'minute'}`;
}

function gauge(window) {
  const { name, limit, left, banned, endsAt } = window;
  const now = endsAt <= performance.now() && !banned ? limit : left;
  const share = limit === 0 ? 0 : now / limit;
  const title = TITLES[name] ?? name;
  const [some, all] = [now.toLocaleString('en'), limit.toLocaleString('en')];
  const bar = el('span', { class: 'bar' });
  bar.style.setProperty('--share', `${share * 100}%`);
  const meter = {
    role: 'meter',
    'aria-label': `${title}: requests left`,
    'aria-valuemin': 0,
    'aria-valuemax': limit,
    'aria-valuenow': now,
    'aria-valuetext': `${some} of ${all} left`,
  };
  const count = el('span', { class: 'count' }, el('b', { text: some }), ` of ${all} left`);
  return el(
    'div',
    { class: `gauge ${share > 0.5 ? 'high' : share > 0.15 ? 'middle' : 'low'}`, 'data-window': name },
    el('p', { class: 'gauge-head' }, el('span', { text: title }), count),
    el('div', { class: 'track', ...meter }, bar),
    el('p', { class: 'gauge-foot', text: gaugeFoot(window) }),
  );
}

function drawGauges() {
  const box = byId('gauges');
  if (wire.windows.length === 0) {
    box.replaceChildren(el('p', { class: 'muted', text: 'Shown with the first reply.' }));
    return;
  }
  const note =
    wire.standing === 'refused' &&
    el('p', { class: 'muted', text: 'Without a good key it is your address that is counted.' });
  box.replaceChildren(...(note ? [note] : []), ...wire.windows.map(gauge));
}

function bannerText({ code, windows }) {
  if (code === 'key_banned') {
    const text =
      'It asked on after it was told to wait. Waiting is all it takes now: asking meanwhile neither counts nor makes ' +
      'it longer. The operator can end it with “petstore keys lift”.';
    return ['Banned', 'This key is banned for a while', text];
  }
  if (code === 'rate_limited') {
    const used = windows.filter(({ left }) => left === 0).map(({ name }) => name);
    const title = `The ${used.includes('day') ? 'day' : 'minute'} is used up`;
    return ['429', title, 'Nothing is sent until the window is full again: the buttons wait for it.'];
  }
  return ['503', 'The service asks for a moment', 'The buttons wait for it.'];
}

let countdown;

function drawBanner() {
  const box = byId('banner');
  const waiting = wire.wait !== undefined;
  if (waiting) document.body.dataset.waiting = '';
  else delete document.body.dataset.waiting;
  for (const button of document.querySelectorAll('[data-sends]')) {
    if (waiting) button.setAttribute('aria-disabled', 'true');
    else button.removeAttribute('aria-disabled');
  }
  box.hidden = !waiting;
  countdown = undefined;
  if (!waiting) return box.replaceChildren();
  const [mark, title, text] = bannerText(wire.wait);
  box.className = `banner ${wire.wait.code === 'key_banned' ? 'ban' : 'limit'}`;
  countdown = el('p', { class: 'countdown', role: 'timer', 'aria-live': 'off' });
  const heading = el('p', { class: 'banner-title' }, badge(mark, 'bad'), ` ${title}`);
  box.replaceChildren(el('div', { role: 'alert' }, heading, el('p', { class: 'muted', text })), countdown);
  tick();
}

function tick() {
  drawGauges();
  if (countdown === undefined) return;
  const left = Math.ceil((wire.wait.until - performance.now()) / 1000);
  countdown.textContent = duration(Math.max(0, left));
  if (left > 0) return;
  endWait();
  announce('You can go on.');
}

export function startPanel() {
  keyPanel();
  bus.addEventListener('windows', drawGauges);
  bus.addEventListener('wait', drawBanner);
  drawGauges();
  setInterval(tick, 1000);
}
