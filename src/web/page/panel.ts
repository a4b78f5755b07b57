/** The side of the page: the key, the windows, and the banner while nothing may be sent. */
import { announce, badge, button, byId, disableWhileWaiting, duration, el, redraw, sendButton } from './dom.js';
import { bus, emit, endWait, secondsLeft, setKey, wire } from './wire.js';

/** A request without a reply for that long is shown. */
const SLOW_MS = 2_000;
const TITLES = { minute: 'Left this minute', day: 'Left this day', address: 'Left for your address' };
const STANDING = {
  none: ['No key yet', ''],
  unknown: ['Not tried yet', ''],
  accepted: ['Accepted', 'good'],
  refused: ['Refused', 'bad'],
};

/** The pasted text may be all that `keys create` printed, with the key in it. */
const keyIn = (text) => /\bps_(?:live|test)_\w+/.exec(text)?.[0] ?? text.trim();

function startKey() {
  const input = byId('key-input');
  const show = byId('key-show');
  input.value = wire.key;
  input.addEventListener('paste', (event) => {
    event.preventDefault(); // the input would join the lines
    input.value = keyIn(event.clipboardData.getData('text'));
  });
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const key = keyIn(input.value);
    if (key === '') return refuseEmpty(input);
    input.value = key;
    if (key === wire.key && wire.wait !== undefined) return announce('This key waits: the banner says how long.');
    setKey(key);
    emit('start');
  });
  show.addEventListener('click', () => {
    const isShown = input.type === 'text';
    input.type = isShown ? 'password' : 'text';
    show.setAttribute('aria-pressed', String(!isShown));
  });
  byId('key-forget').addEventListener('click', () => {
    input.value = '';
    setKey('');
    announce('The key is forgotten.');
    input.focus();
  });
}

/** A key in use is forgotten by its own button alone. */
function refuseEmpty(input) {
  const text = 'Paste a key here first.';
  byId('key-refusal').textContent = text;
  input.setAttribute('aria-invalid', 'true');
  announce(text);
  input.focus();
}

/** An accepted key has its form closed: the standing alone is of interest then. */
function drawKey() {
  const box = byId('key');
  const standing = byId('key-standing');
  const isWaiting = wire.wait !== undefined && wire.standing === 'unknown'; // after a reload
  const [text, kind] = wire.isSilent ? ['No reply', 'bad'] : isWaiting ? ['Waiting', ''] : STANDING[wire.standing];
  const isNews = standing.textContent !== text;
  if (isNews && wire.standing !== 'accepted') box.open = true;
  else if (isNews && !wire.isSilent) {
    if (box.contains(document.activeElement)) box.querySelector('summary').focus();
    box.open = false;
  }
  if (isNews) standing.textContent = text;
  standing.className = `standing ${kind}`;
  byId('key-refusal').textContent = wire.refusal;
  byId('key-input').setAttribute('aria-invalid', String(wire.standing === 'refused'));
  byId('key-forget').hidden = wire.key === '';
}

/** By window: its gauge, and a function that sets it. A gauge stays where it is, so that nobody who reads it is moved. */
const gauges = new Map();

function newGauge(name) {
  const title = TITLES[name] ?? name;
  const [count, hint] = [el('p'), el('p', { class: 'hint' })];
  const meter = el('meter', { 'aria-label': title });
  const box = el('div', { 'data-window': name }, el('p', { text: title }), count, meter, hint);
  const set = (limit, now, seconds) => {
    count.textContent = `${now.toLocaleString('en')} of ${limit.toLocaleString('en')}`;
    hint.textContent = seconds > 0 ? `Full again in ${duration(seconds)}` : 'Full';
    Object.assign(meter, { max: limit, low: limit * 0.15, high: limit * 0.5, optimum: limit, value: now });
  };
  return { box, set };
}

function gaugeOf(window) {
  const { name, limit, left } = window;
  if (!gauges.has(name)) gauges.set(name, newGauge(name));
  const { box, set } = gauges.get(name);
  const seconds = secondsLeft(window);
  set(limit, seconds === 0 ? limit : left, seconds);
  return box;
}

function drawGauges() {
  const box = byId('gauges');
  const empty = el('p', { class: 'muted', text: 'Shown with the first reply.' });
  const shown = wire.windows.length > 0 ? wire.windows.map(gaugeOf) : [empty];
  const isThere = shown.length === box.children.length && shown.every((one) => one.parentElement === box);
  if (!isThere) box.replaceChildren(...shown);
}

/** The title and text of a wait. The service's message, without the time that it names: the countdown shows that. */
function waitWords({ status, code, message }) {
  const cause = message.replace(/[;,.]?[^;,.]*\bin \d+ s\b.*$/s, '');
  const text = `${cause[0]?.toUpperCase() ?? ''}${cause.slice(1)}. This page sends nothing meanwhile, and goes on by itself.`;
  if (status === 503) return ['The service is not available for a moment', [text]];
  if (code !== 'key_banned') return ['The service asks to wait', [text]];
  const lift = el('code', { text: document.body.dataset.lift });
  return ['This key is banned', [text, ' The operator can end it (keys list shows its ID): ', lift]];
}

let countdown;

function waitBanner(wait) {
  const [title, text] = waitWords(wait);
  countdown = el('p', { class: 'countdown', role: 'timer', 'aria-live': 'off' });
  const look = () => {
    endWait();
    emit('retry');
  };
  const check = wait.code === 'key_banned' ? button('Check now', look, { class: 'small' }) : undefined;
  const heading = el('p', { class: 'title' }, badge(String(wait.status), 'bad'), ` ${title}`);
  return [
    el('div', { role: 'alert' }, heading, el('p', { class: 'hint' }, ...text)),
    el('div', { class: 'until' }, countdown, check),
  ];
}

/** Requests stay allowed while the service does not answer: the next one may be answered. */
function silenceBanner() {
  const title = el('p', { class: 'title', text: 'The service does not answer' });
  const text = 'It may have stopped, or the network is down. This page may be out of date.';
  const retry = sendButton('Try again', () => emit('retry'), { class: 'small' });
  return [el('div', { role: 'alert' }, title, el('p', { class: 'hint', text })), retry];
}

/** A wait is more important than silence. */
function drawBanner() {
  const { wait, isSilent } = wire;
  const box = byId('banner');
  document.body.toggleAttribute('data-waiting', wait !== undefined);
  for (const one of document.querySelectorAll('[data-sends]')) disableWhileWaiting(one);
  countdown = undefined;
  box.className = `banner ${wait?.code === 'key_banned' ? 'bad' : 'warn'}`;
  redraw(box, wait ? waitBanner(wait) : isSilent ? silenceBanner() : []);
  box.hidden = !box.hasChildNodes();
  document.body.toggleAttribute('data-banner', !box.hidden);
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
  emit('resume');
}

let slowTimer;

/** So that nobody takes a slow reply for a press that did not count. */
function drawPending() {
  const box = byId('pending');
  const show = () => {
    box.hidden = false;
    announce(box.textContent);
  };
  clearTimeout(slowTimer);
  if (wire.pending === 0) box.hidden = true;
  else if (box.hidden) slowTimer = setTimeout(show, SLOW_MS);
}

export function startPanel() {
  startKey();
  for (const event of ['key', 'silence', 'wait']) bus.addEventListener(event, drawKey);
  for (const event of ['wait', 'silence']) bus.addEventListener(event, drawBanner);
  bus.addEventListener('windows', drawGauges);
  bus.addEventListener('pending', drawPending);
  drawKey();
  drawBanner();
  setInterval(tick, 1000);
}
