/** The lab, where the server has one: a clock, faults, a record and a grade for the key that is in use. */
import { badge, el, note, problem, row, say, sendButton, table } from './dom.js';
import { statusBadge } from './exchanges.js';
import { Form, idInput, select, textInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { call, forgetWindows } from './wire.js';

const KINDS = ['delay', 'unavailable', 'drop_before', 'drop_after', 'truncate', 'drip'];
const OF_ORDERS = ['listOrders', 'createOrder', 'getOrder', 'updateOrder'];
const OPERATIONS = ['listPets', 'createPet', 'getPet', ...OF_ORDERS, 'listCategories', 'putCategory'];
const MOST_REQUESTS = 50;
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

/** A card that shows what is at a path, and reads it again when told to. */
function part(title, path, draw, ...tools) {
  const box = el('div', { class: 'part' });
  const read = async () => {
    const reply = await call('GET', path);
    if (reply === undefined) return;
    box.replaceChildren(...(reply.ok ? draw(reply.value) : [problem(reply.message, read)]));
  };
  return {
    read,
    element: el('section', { class: 'card', 'aria-label': title }, el('h3', { text: title }), box, ...tools),
  };
}

function clockAt({ ahead }) {
  return [el('p', { class: 'figure' }, el('b', { text: span(ahead) }), ' ahead')];
}

async function advance(text) {
  const reply = await call('POST', '/lab/clock', { body: objectOf({ advance: JSON.stringify(text) }) });
  if (reply?.ok) {
    forgetWindows();
    await clock.read();
  }
  return reply;
}

const advanceForm = new Form({
  title: 'Let time pass',
  button: 'Advance',
  fields: [['advance', 'By', textInput({ value: '90s' }), '90s, 5m, 24h or 30d; forward only']],
  submit: ({ advance: by }) => advance(by.value.trim()),
  done: ({ ahead }) => `The clock of this key is ${span(ahead)} ahead.`,
  buttons: ['1m', '24h'].map((by) =>
    sendButton(`+ ${by}`, async () => {
      const reply = await advance(by);
      if (reply) say(advanceForm.note, reply.ok ? `${by} passed.` : reply.message, !reply.ok);
    }),
  ),
});

const clock = part('Clock', '/lab/clock', clockAt, advanceForm.element);

const FAULTS = [['col-id', 'Id'], ['col-main', 'Fault'], ['col-more', 'For']]; // biome-ignore format: a table

function faultRow({ id, kind, operation = 'any operation', times, skip = 0, ms, seconds }) {
  const more = [ms && `${ms} ms`, seconds && `Retry-After: ${seconds}`].filter((text) => text);
  const which = `${operation}, ${times} ×${skip > 0 ? `, after ${skip}` : ''}`;
  return row(FAULTS, [[String(id)], [el('b', { text: kind }), ` ${more.join(', ')}`], [which]]);
}

function faultsNow(all) {
  if (all.length === 0) return [el('p', { class: 'state', text: 'No faults wait.' })];
  return [table('Faults', FAULTS, all.map(faultRow))];
}

const removeFaults = sendButton('Remove all', async () => {
  const reply = await call('DELETE', '/lab/faults');
  if (reply) say(faultForm.note, reply.ok ? 'All faults are removed.' : reply.message, !reply.ok);
  await faults.read();
});

const number = (control) => (control.value.trim() === '' ? undefined : asTyped(control.value));

const faultForm = new Form({
  title: 'Inject a fault',
  button: 'Inject',
  fields: [
    ['kind', 'Kind', select(KINDS)],
    ['operation', 'Operation', select([['', 'any'], ...OPERATIONS])],
    ['times', 'Times', idInput(), 'Left out: once'],
    ['skip', 'Skip', idInput(), 'Matching requests that pass first'],
    ['ms', 'Milliseconds', idInput(), 'With delay and drip'],
    ['seconds', 'Seconds', idInput(), 'With unavailable: Retry-After'],
  ],
  submit: async ({ kind, operation, times, skip, ms, seconds }) => {
    const members = {
      kind: JSON.stringify(kind.value),
      operation: operation.value === '' ? undefined : JSON.stringify(operation.value),
      times: number(times),
      skip: number(skip),
      ms: number(ms),
      seconds: number(seconds),
    };
    const reply = await call('POST', '/lab/faults', { body: objectOf(members) });
    if (reply?.ok) await faults.read();
    return reply;
  },
  done: ({ id, kind }) => `Fault ${id}, ${kind}, waits for its request.`,
  buttons: [removeFaults],
});

const faults = part('Faults', '/lab/faults', faultsNow, faultForm.drawer());

// biome-ignore format: a table
const REQUESTS = [['col-id', 'Status'], ['col-main', 'Request'], ['col-more', 'At'], ['col-status', 'Connection'], ['col-actions', 'Fault']];

function requestRow({ at, method, target, status, connection, idempotencyKey, fault }) {
  const request = [
    el('code', { text: `${method} ${target}` }),
    ' ',
    idempotencyKey ? badge('Idempotency-Key', '') : '',
  ];
  const time = new Date(at).toLocaleTimeString();
  return row(REQUESTS, [
    [statusBadge(status ?? 0)],
    request,
    [time],
    [`# ${connection}`],
    [fault ? badge(fault, 'warn') : ''],
  ]);
}

function recordNow(all) {
  if (all.length === 0) return [el('p', { class: 'state', text: 'This key has sent nothing yet.' })];
  return [table('Recorded requests', REQUESTS, all.map(requestRow))];
}

const record = part('Record', `/lab/requests?limit=${MOST_REQUESTS}`, recordNow);

// biome-ignore format: a table
const CHECKS = [['col-id', 'Verdict'], ['col-main', 'Check'], ['col-more', 'Why'], ['col-status', 'Weight']];

function gradeNow({ grade: letter, score, seen, checks }) {
  const rows = checks.map(({ id, weight, verdict, why }) =>
    row(CHECKS, [[badge(verdict, VERDICTS[verdict])], [el('code', { text: id })], [why ?? ''], [String(weight)]]),
  );
  const standing = letter === null ? 'No grade yet' : `Score ${score} of 100`;
  return [
    el(
      'p',
      { class: 'figure' },
      el('b', { class: 'letter', text: letter ?? '–' }),
      ` ${standing}; ${seen} % of all weight was seen.`,
    ),
    table('Checks', CHECKS, rows),
  ];
}

const gradeNote = note();

async function command(path, words) {
  const reply = await call('POST', path);
  if (reply === undefined) return;
  say(gradeNote, reply.ok ? words(reply.value) : reply.message, !reply.ok);
  if (reply.ok) await showLab();
}

const drill = sendButton('Arm the drill', () =>
  command('/lab/drill', ({ script }) => script.map(({ does }) => does).join(' ')),
);
const reset = sendButton('Reset', () =>
  command('/lab/reset', () => {
    forgetWindows();
    return 'Animals, orders and categories are as the seed makes them; limits, clock, faults and record start again.';
  }),
);

const grade = part('Grade', '/lab/grade', gradeNow, el('div', { class: 'actions' }, drill, reset), gradeNote);

async function showLab() {
  await Promise.all([clock, faults, record, grade].map(({ read }) => read()));
}

const intro = el('p', {
  class: 'muted',
  text: 'For this key alone, on the staging server. Requests to the lab cost nothing of its plan.',
});
const again = el('div', { class: 'toolbar' }, intro, sendButton('Reload', showLab));

export const labView = {
  title: 'Lab',
  parts: [again, el('div', { class: 'parts' }, ...[clock, grade, faults, record].map(({ element }) => element))],
  show: showLab,
};
