/** The side of the page: the key, the windows, and the banner while nothing may be sent. */
import { announce, badge, button, byId, duration, el, holdFocus, sendButton, setOff, viewHeading } from './dom.js';
import { bus, endWait, secondsLeft, setKey, wire } from './wire.js';

const TITLES = { minute: 'Left this minute', day: 'Left this day', address: 'Left for your address' };
const STANDING = {
  none: ['No key yet', ''],
  unknown: ['Not tried yet', ''],
  accepted: ['Accepted', 'good'],
  refused: ['Refused', 'bad'],
};

/** The pasted text may be the whole output of `keys create`: then the key's id is in it, before the key. */
function readKey(text) {
  const key = /\bps_(?:live|test)_\w+/.exec(text);
  if (key === null) return [text.trim(), ''];
  return [key[0], /\bk[1-9]\d{0,14}\b/.exec(text.slice(0, key.index))?.[0] ?? ''];
}

/** Changes nothing: a key that is in use is forgotten by its own button alone. */
function refuseNone(input) {
  const text = 'Paste a key here first.';
  byId('key-refusal').textContent = text;
  input.setAttribute('aria-invalid', 'true');
  announce(text);
  input.focus();
}

function startKey() {
  const input = byId('key-input');
  const show = byId('key-show');
  input.value = wire.key;
  let id = wire.keyId;
  input.addEventListener('input', () => (id = ''));
  input.addEventListener('paste', (event) => {
    const [key, pasted] = readKey(event.clipboardData.getData('text')); // the input would join its lines
    if (pasted === '') return;
    event.preventDefault();
    [input.value, id] = [key, pasted];
  });
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const [key, typed] = readKey(input.value);
    if (key === '') return refuseNone(input);
    input.value = key;
    id ||= typed;
    setKey(key, id);
    if (wire.key !== '') bus.dispatchEvent(new Event('start'));
  });
  show.addEventListener('click', () => {
    const shown = input.type === 'text';
    input.type = shown ? 'password' : 'text';
    show.setAttribute('aria-pressed', String(!shown));
  });
  byId('key-forget').addEventListener('click', () => {
    input.value = id = '';
    setKey('');
    announce('The key is forgotten.');
    input.focus();
  });
}

function drawKey() {
  const [text, kind] = wire.isSilent && wire.key !== '' ? ['No reply', ''] : STANDING[wire.standing];
  const [standing, box] = [byId('key-standing'), byId('key')];
  byId('key-id').textContent = wire.keyId;
  if (wire.standing === 'accepted' && standing.textContent !== text) {
    if (box.contains(document.activeElement)) box.querySelector('summary').focus();
    box.open = false;
  } else if (wire.standing !== 'accepted') box.open = true;
  if (standing.textContent !== text) standing.textContent = text;
  standing.className = `standing ${kind}`;
  byId('key-refusal').textContent = wire.refusal;
  byId('key-input').setAttribute('aria-invalid', String(wire.standing === 'refused'));
  byId('key-forget').hidden = wire.key === '';
}

/** By window: the parts of its gauge that change. They stay where they are, so that nobody who reads them is moved. */
const gauges = new Map();

function newGauge(name) {
  const title = TITLES[name] ?? name;
  const bar = el('span', { class: 'bar' });
  const track = el('div', { class: 'track', role: 'meter', 'aria-label': title, 'aria-valuemin': 0 }, bar);
  const [some, all, hint] = [el('b'), el('span'), el('p', { class: 'hint' })];
  const count = el('p', { class: 'count' }, some, ' of ', all);
  const box = el('div', { 'data-window': name }, el('p', { text: title }), count, track, hint);
  return { box, bar, track, some, all, hint };
}

function gauge(window) {
  const { name, limit, left } = window;
  if (!gauges.has(name)) gauges.set(name, newGauge(name));
  const parts = gauges.get(name);
  const seconds = secondsLeft(window);
  const now = seconds === 0 ? limit : left;
  const share = limit === 0 ? 0 : now / limit;
  const [some, all] = [now.toLocaleString('en'), limit.toLocaleString('en')];
  parts.box.className = `gauge ${share > 0.5 ? '' : share > 0.15 ? 'warn' : 'bad'}`;
  parts.bar.style.setProperty('--share', `${share * 100}%`);
  const meter = { 'aria-valuemax': limit, 'aria-valuenow': now, 'aria-valuetext': `${some} of ${all}` };
  for (const [attribute, value] of Object.entries(meter)) parts.track.setAttribute(attribute, String(value));
  parts.some.textContent = some;
  parts.all.textContent = all;
  parts.hint.textContent = seconds > 0 ? `Full again in ${duration(seconds)}` : 'Full';
  return parts.box;
}

function drawGauges() {
  const box = byId('gauges');
  const empty = el('p', { class: 'muted', text: 'Shown with the first reply.' });
  const shown = wire.windows.length > 0 ? wire.windows.map(gauge) : [empty];
  const isThere = shown.length === box.children.length && shown.every((one) => one.parentElement === box);
  if (!isThere) box.replaceChildren(...shown);
}

const leftIn = (name) => wire.windows.find((window) => window.name === name);

function bannerText({ code, message }) {
  const day = leftIn('day');
  const today = day && `This day has ${day.left.toLocaleString('en')} of ${day.limit.toLocaleString('en')} left. `;
  if (code === 'key_banned') {
    const why = 'It kept sending requests after a 429. Requests during the ban neither count nor extend it. ';
    const id = wire.keyId === '' ? 'The operator can end it (keys list shows its ID): ' : 'The operator can end it: ';
    return ['Banned', 'This key is banned', [why, today, id]];
  }
  if (code === 'rate_limited') {
    const minute = leftIn('minute');
    const isLeft = minute?.left > 0 && day?.left !== 0; // a limit that is no window: the service says which
    if (isLeft) return ['429', 'The service asks to wait', [message, '. Nothing is sent until then.']];
    const other = minute ? 'The minute is used up' : 'Too many requests without a valid key';
    const title = day?.left === 0 ? 'The day is used up' : other;
    return ['429', title, ['Nothing is sent until then, so that no ban begins. ', day?.left === 0 ? undefined : today]];
  }
  return ['503', 'The service is not available for a moment', ['Nothing is sent until then.']];
}

let countdown;

/** The banner of a service that does not answer. Requests stay allowed: the next one may be answered. */
function silenceBanner() {
  const text = 'It may have stopped, or the network is down. This page may be out of date.';
  return [
    el(
      'div',
      { role: 'alert' },
      el('p', { class: 'title', text: 'The service does not answer' }),
      el('p', { class: 'hint', text }),
    ),
    sendButton('Try again', () => bus.dispatchEvent(new Event('again')), { class: 'small' }),
  ];
}

/** So that nobody takes a slow reply for a press that did not count. */
function slowBanner() {
  const text = `${wire.slow} was sent, and has no reply yet.`;
  return [
    el('div', {}, el('p', { class: 'title', text: 'Waiting for a reply.' }), ' ', el('p', { class: 'hint', text })),
  ];
}

/** Something else than a slow reply is more important. */
function drawSlow() {
  if (wire.wait !== undefined || wire.isSilent) return;
  drawBanner();
  if (wire.slow !== undefined) announce(byId('banner').textContent);
}

function drawBanner() {
  const back = holdFocus();
  fillBanner();
  back(viewHeading());
}

function fillBanner() {
  const { wait, isSilent, slow } = wire;
  const box = byId('banner');
  document.body.toggleAttribute('data-waiting', wait !== undefined);
  for (const one of document.querySelectorAll('[data-sends]')) setOff(one);
  box.hidden = wait === undefined && !isSilent && slow === undefined;
  document.body.toggleAttribute('data-banner', !box.hidden);
  countdown = undefined;
  box.className = 'banner warn';
  if (wait === undefined && isSilent) return box.replaceChildren(...silenceBanner());
  if (wait === undefined) return box.replaceChildren(...(slow === undefined ? [] : slowBanner()));
  const banned = wait.code === 'key_banned';
  const [mark, title, text] = bannerText(wait);
  box.className = `banner ${banned ? 'bad' : 'warn'}`;
  countdown = el('p', { class: 'countdown', role: 'timer', 'aria-live': 'off' });
  const lift = el('code', { text: document.body.dataset.lift.replace(' ID', ` ${wire.keyId || 'ID'}`) });
  const words = el('p', { class: 'hint' }, ...text.filter((part) => part), ...(banned ? [lift] : []));
  const look = () => {
    endWait();
    bus.dispatchEvent(new Event('start'));
  };
  box.replaceChildren(
    el('div', { role: 'alert' }, el('p', { class: 'title' }, badge(mark, 'bad'), ` ${title}`), words),
    el('div', { class: 'until' }, countdown, ...(banned ? [button('Check now', look, { class: 'small' })] : [])),
  );
  tick();
}

function tick() {
  drawGauges();
  if (countdown === undefined) return;
  const left = secondsLeft(wire.wait);
  countdown.textContent = duration(left);
  if (left > 0) return;
  endWait();
  announce('You can go on.');
}

export function startPanel() {
  startKey();
  bus.addEventListener('key', drawKey);
  bus.addEventListener('windows', drawGauges);
  bus.addEventListener('wait', drawBanner);
  bus.addEventListener('slow', drawSlow);
  bus.addEventListener('silence', () => {
    drawKey();
    drawBanner();
  });
  drawKey();
  drawGauges();
  drawBanner();
  setInterval(tick, 1000);
}
