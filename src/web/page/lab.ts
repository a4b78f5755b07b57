/** The lab, if the server has one: a clock, faults, a record and a grade for the key that is in use. */
// biome-ignore format: names
import {
  announce, badge, button, byId, confirmButton, el, inline, problem, redraw, report, row, sendButton, state, table,
} from './dom.js';
import { Form, idInput, select, textInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { statusBadge } from './requests.js';
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
};
const OF_SOME_KINDS = ['ms', 'seconds', 'as', 'status'];
const OF_ORDERS = ['listOrders', 'createOrder', 'getOrder', 'updateOrder'];
const OF_PETS = ['listPets', 'createPet', 'getPet', 'updatePet', 'deletePet'];
const OPERATIONS = [...OF_PETS, ...OF_ORDERS, 'listCategories', 'putCategory'];
const MOST_REQUESTS = 100;
const REFRESH_MS = 3_000;
const UNITS = { d: 86_400, h: 3_600, m: 60, s: 1 };
const VERDICTS = { pass: 'good', warn: 'warn', fail: 'bad', unseen: '' };
// biome-ignore format: tables
const COLUMNS = {
  faults: [['col-id', 'Id'], ['col-main', 'Fault'], ['col-more', 'For'], ['col-actions', '']],
  requests: [['col-id', 'Status'], ['col-main', 'Request'], ['col-more', 'At'], ['col-status', 'Connection'], ['col-actions', 'Fault']],
  checks: [['col-id', 'Verdict'], ['col-main', 'Check'], ['col-more', 'Why'], ['col-status', 'Weight']],
};

/** `1 d 2 h`. */
function span(seconds) {
  const words = [];
  for (const [unit, length] of Object.entries(UNITS)) {
    const count = Math.floor(seconds / length);
    if (count > 0) words.push(`${count} ${unit}`);
    seconds %= length;
  }
  return words.join(' ');
}

/** A card for the content at a path, which `read` renews; quietly, if the timer asks and not the user. */
function part(title, path, draw, ...tools) {
  const heading = el('h3', { text: title, tabindex: -1 });
  const box = el('div', { class: 'part' });
  let drawn;
  const read = async (isQuiet = false) => {
    const reply = await call('GET', path, { isQuiet });
    const isNews = reply !== undefined && !(isQuiet && (!reply.ok || reply.text === drawn));
    if (!isNews) return;
    drawn = reply.ok ? reply.text : undefined;
    redraw(box, reply.ok ? draw(reply.value) : [problem(reply.message, () => read(), reply.status)], heading);
    if (!reply.ok) announce(`${title}: ${reply.message}`);
  };
  return { read, element: el('section', { class: 'card', 'aria-label': title }, heading, box, ...tools) };
}

const json = (text) => (text === '' ? undefined : JSON.stringify(text));

/** Makes a change, and shows its result. */
async function act(note, words, renew, ...request) {
  const reply = await call(...request);
  if (reply === undefined) return;
  report(note, reply.ok ? words(reply.value) : reply.message, !reply.ok);
  if (reply.ok) await renew();
}

const advance = (by) => ['POST', '/lab/clock', { body: objectOf({ advance: JSON.stringify(by) }) }];

const advanceForm = new Form({
  title: 'Let time pass',
  button: 'Advance',
  fields: [['advance', 'Advance by', textInput({ value: '90s' }), '90s, 5m, 24h or 30d; forward only']],
  submit: async ({ advance: by }) => {
    const reply = await call(...advance(by.value.trim()));
    if (reply?.ok) await clock.read();
    return reply;
  },
  done: ({ ahead }) => `The clock of this key is ${span(ahead)} ahead.`,
  buttons: ['1m', '24h'].map((by) =>
    sendButton(`+ ${by}`, () => act(advanceForm.note, () => `${by} passed.`, clock.read, ...advance(by))),
  ),
});

const clockNow = ({ ahead }) => {
  const text = ahead === 0 ? 'not ahead' : `${span(ahead)} ahead`;
  return [el('p', { class: 'figure' }, 'This key’s clock: ', el('b', { text }))];
};
const clock = part('Clock', '/lab/clock', clockNow, advanceForm.element);

function faultRow({ id, kind, operation = 'any operation', times, skip, ms, seconds, as, status }) {
  const retryAfter = seconds && `Retry-After: ${seconds}${as === 'date' ? ' s, as a date' : ''}`;
  const more = [status, ms !== undefined && `${ms} ms`, retryAfter];
  const which = `${operation}, ${times} ×${skip > 0 ? `, after ${skip}` : ''}`;
  const words = ` ${more.filter((text) => text).join(', ')}`;
  const remove = sendButton('Remove', () => removeFaults(`/${id}`, 'The fault is removed.'), {
    class: 'small',
    'aria-label': `Remove fault ${id}`,
  });
  return row(COLUMNS.faults, [String(id), [el('b', { text: kind }), words], which, remove]);
}

function faultsNow(all) {
  return all.length === 0 ? [state('No faults are armed.')] : [table('Faults', COLUMNS.faults, all.map(faultRow))];
}

const removeFaults = (which, done) => act(faultForm.note, () => done, faults.read, 'DELETE', `/lab/faults${which}`);

const faultForm = new Form({
  title: 'Inject a fault',
  button: 'Inject',
  fields: [
    ['kind', 'Kind', select(Object.keys(KINDS), { on: { change: () => fitFields() } })],
    ['operation', 'Operation', select([['', 'any'], ...OPERATIONS])],
    ['status', 'Status', select(['500', '502', '503', '504', '429'])],
    ['ms', 'Milliseconds', idInput(), 'Left out: 1000'],
    ['seconds', 'Retry-After', idInput(), 'Seconds; left out: 1, with status: none'],
    ['as', 'Written as', select([['', 'seconds'], ['date', 'a date']])], // biome-ignore format: short
    ['times', 'Times', idInput(), 'Left out: once'],
    ['skip', 'Skip', idInput(), 'Matching requests that pass first'],
  ],
  submit: async ({ kind, operation, as, ...numbers }) => {
    const typed = Object.entries(numbers).map(([name, { value }]) => [name, value.trim() && asTyped(value)]);
    const own = { as: json(as.value), ...Object.fromEntries(typed) };
    const isMeant = ([name, text]) => text && (!OF_SOME_KINDS.includes(name) || KINDS[kind.value].includes(name));
    const members = Object.fromEntries(Object.entries(own).filter(isMeant));
    const body = objectOf({ kind: json(kind.value), operation: json(operation.value), ...members });
    const reply = await call('POST', '/lab/faults', { body });
    if (reply?.ok) await faults.read();
    return reply;
  },
  done: ({ id, kind }) => `Fault ${id}, ${kind}, waits for its request.`,
  buttons: [sendButton('Remove all', () => removeFaults('', 'All faults are removed.'))],
});

/** Shows the fields that fit the kind. */
function fitFields() {
  const { controls } = faultForm;
  for (const name of OF_SOME_KINDS) {
    controls[name].closest('.field').hidden = !KINDS[controls.kind.value].includes(name);
  }
}
fitFields();

const faults = part('Faults', '/lab/faults', faultsNow, faultForm.drawer());

const requestRowId = (requestId) => `request-${requestId}`;

function requestRow({ at, method, target, status, requestId, connection, idempotencyKey, fault, ms, waited = null }) {
  const request = [
    el('code', { text: `${method} ${target}` }),
    ' ',
    waited === null ? '' : badge(`again after ${Math.round(waited)} ms`, ''),
    idempotencyKey ? badge(`Idempotency-Key ${idempotencyKey.slice(0, 4)}…`, '') : '',
  ];
  const time = `${new Date(at).toLocaleTimeString()}, ${Math.round(ms)} ms`;
  const cells = [statusBadge(status ?? 0), request, time, `# ${connection}`, fault ? badge(fault, 'warn') : ''];
  return row(COLUMNS.requests, cells, { id: requestRowId(requestId), tabindex: -1 });
}

function recordNow(all) {
  if (all.length === 0) return [state('This key has sent nothing yet.')];
  return [table('Recorded requests', COLUMNS.requests, all.map(requestRow))];
}

const record = part('Record', `/lab/requests?limit=${MOST_REQUESTS}`, recordNow);

/** A button that shows the row of a request in the record, if it is still there. */
function requestLink(requestId) {
  const show = () => {
    const found = byId(requestRowId(requestId));
    if (found === null) return announce('The record no longer has this request.');
    found.scrollIntoView({ block: 'center' });
    found.focus({ preventScroll: true });
  };
  return button(requestId, show, { class: 'small request-link' });
}

function gradeNow({ grade: letter, score, seen, next, checks }) {
  const rows = checks.map(({ id, weight, verdict, why, requestIds }) => {
    const links = requestIds.length === 0 ? '' : el('span', { class: 'links' }, ...requestIds.map(requestLink));
    const cells = [
      badge(verdict, VERDICTS[verdict]),
      el('code', { text: id }),
      [inline(why), links].flat(),
      String(weight),
    ];
    return row(COLUMNS.checks, cells);
  });
  const standing = letter === null ? 'No grade yet' : `Score ${score} of 100`;
  const mark = el('b', { class: 'letter', text: letter ?? '–' });
  const missing = next.split('; ').map((text) => el('li', {}, ...inline(text)));
  const more = [
    el('p', { class: 'muted', text: 'For more to be seen, the client would have to:' }),
    el('ul', { class: 'missing' }, ...missing),
  ];
  const figure = el('p', { class: 'figure' }, mark, ` ${standing}; ${seen} % of all weight was seen.`);
  return [figure, ...(next === '' ? [] : more), table('Checks', COLUMNS.checks, rows)];
}

const gradeNote = el('p', { class: 'note' });
const drillScript = el('ol', { class: 'script' });

const drill = sendButton('Arm the drill', () => {
  const words = ({ script: steps }) => {
    drillScript.replaceChildren(
      ...steps.map(({ does, right }) => el('li', {}, el('b', {}, ...inline(does)), ' ', ...inline(right))),
    );
    return 'The drill is armed. Let your client list, page, add and order for half a minute.';
  };
  return act(gradeNote, words, showLab, 'POST', '/lab/drill');
});

function resetLab(body, done) {
  drillScript.replaceChildren();
  return act(gradeNote, () => done, showLab, 'POST', '/lab/reset', { body });
}

const OF_KEY = 'Limits, clock, faults and record of this key start again.';
const OF_SHOP =
  'Animals, orders and categories are as the seed makes them; limits, clock, faults and record start again.';
const resetButton = confirmButton('Reset …', undefined, 'Cancel', [
  ['This key alone', () => resetLab('{"only":"key"}', OF_KEY)],
  ['The whole shop, for everybody', () => resetLab(undefined, OF_SHOP)],
]);
const gradeTools = el('div', { class: 'actions' }, drill, el('span', {}, resetButton));

const grade = part('Grade', '/lab/grade', gradeNow);
grade.element.firstChild.after(gradeTools, gradeNote, drillScript); // before the long table
const parts = [grade, clock, faults, record];

async function showLab(isQuiet = false) {
  await Promise.all(parts.map(({ read }) => read(isQuiet === true)));
}

/** Refreshes the lab while it is visible. These requests are not listed under “Requests”. */
setInterval(() => {
  const isSeen = document.visibilityState === 'visible' && clock.element.offsetParent !== null;
  if (isSeen && wire.key !== '' && wire.standing !== 'refused') void showLab(true);
}, REFRESH_MS);

const labWords = 'For this key alone, on the staging server. Requests to the lab cost nothing of its plan.';
const labIntro = el('p', { class: 'muted', text: labWords });

export const labView = {
  title: 'Lab',
  parts: [
    el('div', { class: 'toolbar' }, labIntro, sendButton('Reload', showLab)),
    el('div', { class: 'parts' }, ...parts.map(({ element }) => element)),
  ],
  show: showLab,
};
