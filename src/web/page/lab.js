/** The lab, if the server has one: a clock, faults, a record and a grade for the key that is in use. */
import { announce, badge, button, el, note, once, problem, row, say, sendButton, table } from './dom.js';
import { statusBadge } from './exchanges.js';
import { Form, idInput, select, textInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { call, wire } from './wire.js';

/** The fields that belong to some kinds only, by kind. */
const KINDS = {
  delay: ['ms'],
  unavailable: ['seconds', 'as'],
  status: ['status', 'seconds'],
  hang: ['ms'],
  drop_before: [],
  drop_after: [],
  truncate: [],
  drip: ['ms'],
};
const OF_SOME_KINDS = ['ms', 'seconds', 'as', 'status'];
const OF_ORDERS = ['listOrders', 'createOrder', 'getOrder', 'updateOrder'];
const OPERATIONS = ['listPets', 'createPet', 'getPet', ...OF_ORDERS, 'listCategories', 'putCategory'];
const MOST_REQUESTS = 100;
const REFRESH_MS = 3_000;
const UNITS = [['d', 86_400], ['h', 3_600], ['m', 60], ['s', 1]]; // biome-ignore format: a table
const VERDICTS = { pass: 'good', warn: 'warn', fail: 'bad', unseen: '' };

/** `1 d 2 h`. */
function span(seconds) {
  const words = [];
  for (const [unit, length] of UNITS) {
    const count = Math.floor(seconds / length);
    if (count > 0) words.push(`${count} ${unit}`);
    seconds %= length;
  }
  return words.join(' ') || 'not at all';
}

/** Tells an element of a card from the others there, also when it is drawn anew. */
const whichOf = (element) => element.id || element.ariaLabel || element.textContent;

/** A card for the content at a path, which `read` renews; quietly, if the timer asks and not the user. */
function part(title, path, draw, ...tools) {
  const box = el('div', { class: 'part' });
  let drawn;
  const read = async (isQuiet = false) => {
    const reply = await call('GET', path, { isQuiet });
    if (reply === undefined || (isQuiet && !reply.ok)) return;
    const text = reply.ok ? reply.exchange.text : undefined;
    if (isQuiet && text === drawn) return; // unchanged: the focus stays
    drawn = text;
    const held = box.contains(document.activeElement) ? document.activeElement : undefined;
    box.replaceChildren(...(reply.ok ? draw(reply.value) : [problem(reply.message, () => read())]));
    if (!isQuiet && !reply.ok) announce(`${title}: ${reply.message}`);
    if (held === undefined) return;
    const same = [...box.querySelectorAll('button, [tabindex]')].find((one) => whichOf(one) === whichOf(held));
    (same ?? heading).focus({ preventScroll: true });
  };
  const heading = el('h3', { text: title, tabindex: -1 });
  const element = el('section', { class: 'card', 'aria-label': title }, heading, box, ...tools);
  return { read, element };
}

function clockAt({ ahead }) {
  return [el('p', { class: 'figure' }, el('b', { text: span(ahead) }), ' ahead')];
}

async function advance(text) {
  const reply = await call('POST', '/lab/clock', { body: objectOf({ advance: JSON.stringify(text) }) });
  if (reply?.ok) await clock.read();
  return reply;
}

const advanceForm = new Form({
  title: 'Let time pass',
  button: 'Advance',
  fields: [['advance', 'By', textInput({ value: '90s' }), '90s, 5m, 24h or 30d; forward only']],
  submit: ({ advance: by }) => advance(by.value.trim()),
  done: ({ ahead }) => `The clock of this key is ${span(ahead)} ahead.`,
  buttons: ['1m', '24h'].map((by) =>
    sendButton(
      `+ ${by}`,
      once(async () => {
        const reply = await advance(by);
        if (reply) say(advanceForm.note, reply.ok ? `${by} passed.` : reply.message, !reply.ok);
      }),
    ),
  ),
});

const clock = part('Clock', '/lab/clock', clockAt, advanceForm.element);

const FAULTS = [['col-id', 'Id'], ['col-main', 'Fault'], ['col-more', 'For'], ['col-actions', '']]; // biome-ignore format: a table

function faultRow(fault) {
  const { id, kind, operation = 'any operation', times, skip = 0, ms, seconds, as, status, rate, seed } = fault;
  const told = seconds && `Retry-After: ${seconds}${as === 'date' ? ' s, as a date' : ''}`;
  const more = [status, ms !== undefined && `${ms} ms`, told, rate && `${rate} of them, seed ${seed}`];
  const which = `${operation}, ${times} ×${skip > 0 ? `, after ${skip}` : ''}`;
  const words = ` ${more.filter((text) => text).join(', ')}`;
  const remove = sendButton('Remove', () => removeFaults(`/${id}`), {
    class: 'small',
    'aria-label': `Remove fault ${id}`,
  });
  return row(FAULTS, [[String(id)], [el('b', { text: kind }), words], [which], [remove]]);
}

function faultsNow(all) {
  if (all.length === 0) return [el('p', { class: 'state', text: 'No faults wait.' })];
  return [table('Faults', FAULTS, all.map(faultRow))];
}

async function removeFaults(which) {
  const reply = await call('DELETE', `/lab/faults${which}`);
  const done = which === '' ? 'All faults are removed.' : 'The fault is removed.';
  if (reply) say(faultForm.note, reply.ok ? done : reply.message, !reply.ok);
  await faults.read();
}

const number = (control) => (control.value.trim() === '' ? undefined : asTyped(control.value));

const kind = select(Object.keys(KINDS));

const faultForm = new Form({
  title: 'Inject a fault',
  button: 'Inject',
  fields: [
    ['kind', 'Kind', kind],
    ['operation', 'Operation', select([['', 'any'], ...OPERATIONS])],
    ['status', 'Status', select(['500', '502', '503', '504', '429'])],
    ['ms', 'Milliseconds', idInput(), 'Left out: 1000'],
    ['seconds', 'Retry-After', idInput(), 'Seconds; left out: 1, with status: none'],
    [
      'as',
      'Told as',
      select([
        ['', 'seconds'],
        ['date', 'a date'],
      ]),
    ],
    ['times', 'Times', idInput(), 'Left out: once'],
    ['skip', 'Skip', idInput(), 'Matching requests that pass first'],
    ['rate', 'Rate', textInput({ inputmode: 'decimal' }), 'Such as 0.2: a fifth of them, by chance'],
    ['seed', 'Seed', idInput(), 'With a rate: the same ones each time'],
  ],
  submit: async ({ kind, operation, ...others }) => {
    const own = KINDS[kind.value];
    const isMeant = (name) => !OF_SOME_KINDS.includes(name) || own.includes(name);
    const texts = { as: others.as.value && JSON.stringify(others.as.value) };
    const typed = Object.entries(others).filter(([name]) => isMeant(name));
    const members = {
      kind: JSON.stringify(kind.value),
      operation: operation.value === '' ? undefined : JSON.stringify(operation.value),
      ...Object.fromEntries(typed.map(([name, control]) => [name, texts[name] || number(control)])),
    };
    const reply = await call('POST', '/lab/faults', { body: objectOf(members) });
    if (reply?.ok) await faults.read();
    return reply;
  },
  done: ({ id, kind }) => `Fault ${id}, ${kind}, waits for its request.`,
  buttons: [sendButton('Remove all', () => removeFaults(''))],
});

/** Shows the fields that fit the kind. */
function fitFields() {
  for (const name of OF_SOME_KINDS) {
    faultForm.controls[name].closest('.field').hidden = !KINDS[kind.value].includes(name);
  }
}
kind.addEventListener('change', fitFields);
fitFields();

const faults = part('Faults', '/lab/faults', faultsNow, faultForm.drawer());

// biome-ignore format: a table
const REQUESTS = [['col-id', 'Status'], ['col-main', 'Request'], ['col-more', 'At'], ['col-status', 'Connection'], ['col-actions', 'Fault']];

const rowId = (requestId) => `request-${requestId}`;
const waitText = (ms) => (ms >= 1_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms)} ms`);

function requestRow({ at, method, target, status, requestId, connection, idempotencyKey, fault, ms, waited }) {
  const request = [
    waited === null ? '' : el('span', { class: 'again', text: `again after ${waitText(waited)}` }),
    el('code', { text: `${method} ${target}` }),
    ' ',
    idempotencyKey ? badge(`Idempotency-Key ${idempotencyKey.slice(0, 4)}…`, '') : '',
  ];
  const time = `${new Date(at).toLocaleTimeString()}, ${Math.round(ms)} ms`;
  const cells = [[statusBadge(status ?? 0)], request, [time], [`# ${connection}`], [fault ? badge(fault, 'warn') : '']];
  return row(REQUESTS, cells, { id: rowId(requestId), tabindex: -1, class: waited === null ? undefined : 'tries' });
}

/** Puts tries of the same request together, oldest first; the group with the newest try is on top. */
function grouped(all) {
  const groups = new Map();
  for (const one of [...all].reverse()) {
    const group = groups.get(one.again) ?? [];
    groups.delete(one.again);
    group.push(one);
    groups.set(one.requestId, group);
  }
  return [...groups.values()].reverse().flat();
}

function recordNow(all) {
  if (all.length === 0) return [el('p', { class: 'state', text: 'This key has sent nothing yet.' })];
  return [table('Recorded requests', REQUESTS, grouped(all).map(requestRow))];
}

const record = part('Record', `/lab/requests?limit=${MOST_REQUESTS}`, recordNow);

// biome-ignore format: a table
const CHECKS = [['col-id', 'Verdict'], ['col-main', 'Check'], ['col-more', 'Why'], ['col-status', 'Weight']];

/** A button that shows the row of a request in the record, if it is still there. */
function requestLink(requestId) {
  const show = () => {
    const found = document.getElementById(rowId(requestId));
    if (found === null) return announce('The record no longer has this request.');
    found.scrollIntoView({ block: 'center' });
    found.focus({ preventScroll: true });
  };
  return button(requestId, show, { class: 'small request-link' });
}

function gradeNow({ grade: letter, score, seen, next, checks }) {
  const rows = checks.map(({ id, weight, verdict, why, requestIds }) => {
    const links = requestIds.length === 0 ? [] : [el('span', { class: 'links' }, ...requestIds.map(requestLink))];
    return row(CHECKS, [
      [badge(verdict, VERDICTS[verdict])],
      [el('code', { text: id })],
      [why, ...links],
      [String(weight)],
    ]);
  });
  const standing = letter === null ? 'No grade yet' : `Score ${score} of 100`;
  const missing = next === '' ? [] : next.split('; ').map((text) => el('li', { text }));
  return [
    el(
      'p',
      { class: 'figure' },
      el('b', { class: 'letter', text: letter ?? '–' }),
      ` ${standing}; ${seen} % of all weight was seen.`,
    ),
    missing.length > 0 && el('p', { class: 'muted', text: 'For more to be seen, the client would have to:' }),
    missing.length > 0 && el('ul', { class: 'missing' }, ...missing),
    table('Checks', CHECKS, rows),
  ].filter(Boolean);
}

const gradeNote = note();

async function command(path, words, body) {
  const reply = await call('POST', path, { body });
  if (reply === undefined) return;
  say(gradeNote, reply.ok ? words(reply.value) : reply.message, !reply.ok);
  if (reply.ok) await showLab();
}

const script = el('ol', { class: 'script' });
const drill = sendButton('Arm the drill', () =>
  command('/lab/drill', ({ script: steps }) => {
    script.replaceChildren(...steps.map(({ does, right }) => el('li', {}, el('b', { text: does }), ` ${right}`)));
    return 'The drill is armed. Let your client list, page, add and order for half a minute.';
  }),
);

/** Asks before it resets, since a reset of the whole shop concerns everybody. */
const asked = el('div', { class: 'actions', role: 'group', 'aria-label': 'Extent of the reset', hidden: true });
const reset = button(
  'Reset …',
  once(() => {
    asked.hidden = !asked.hidden;
    if (!asked.hidden) asked.querySelector('button').focus();
  }),
);
function closeAsked() {
  asked.hidden = true;
  reset.focus();
}
asked.addEventListener('keydown', ({ key }) => key === 'Escape' && closeAsked());

function resetButton(text, body, done) {
  return sendButton(text, async () => {
    script.replaceChildren();
    closeAsked();
    await command('/lab/reset', () => done, body);
  });
}

asked.append(
  button('Cancel', closeAsked), // has the focus first, so that Enter pressed twice resets nothing
  resetButton('This key alone', '{"only":"key"}', 'Limits, clock, faults and record of this key start again.'),
  resetButton(
    'The whole shop, for everybody',
    undefined,
    'Animals, orders and categories are as the seed makes them; limits, clock, faults and record start again.',
  ),
);

const gradeTools = [el('div', { class: 'actions' }, drill, reset), asked, gradeNote, script];
const grade = part('Grade', '/lab/grade', gradeNow, ...gradeTools);
const parts = [clock, faults, record, grade];

async function showLab(isQuiet = false) {
  await Promise.all(parts.map(({ read }) => read(isQuiet)));
}

/** Refreshes the lab while it is visible. These requests are not listed under “Requests”. */
setInterval(() => {
  const isSeen = document.visibilityState === 'visible' && clock.element.offsetParent !== null;
  if (isSeen && wire.key !== '' && wire.standing !== 'refused') void showLab(true);
}, REFRESH_MS);

const intro = el('p', {
  class: 'muted',
  text: 'For this key alone, on the staging server. Requests to the lab cost nothing of its plan.',
});
const again = el(
  'div',
  { class: 'toolbar' },
  intro,
  sendButton('Reload', () => showLab()),
);

export const labView = {
  title: 'Lab',
  parts: [again, el('div', { class: 'parts' }, ...[clock, grade, faults, record].map(({ element }) => element))],
  show: () => showLab(),
};
