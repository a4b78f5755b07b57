/**
 * The lab, if the server has one: a clock, a record and a grade for the key that is in use. Faults are injected, and the whole
 * shop is reset, from the reference.
 */
// biome-ignore format: names
import {
  announce, badge, button, type Column, duration, el, inline, problem, report, row, sendButton, state, table,
} from './dom.ts';
import { isVisible } from './focus.ts';
import { objectOf } from './json.ts';
import { statusBadge } from './requests.ts';
import { call, wire } from './wire.ts';

interface Clock {
  ahead: number;
}
interface Recorded {
  at: string;
  method: string;
  target: string;
  status: number | null;
  requestId: string;
  connection: number;
  idempotencyKey: string | null;
  fault: string | null;
  ms: number;
  waited?: number | null;
}
interface Grade {
  grade: string | null;
  score: number;
  seen: number;
  /** What the client would have to do for more to be seen. */
  next: string;
  checks: { id: string; weight: number; verdict: keyof typeof VERDICTS; why: string; requestIds: string[] }[];
}
interface Drill {
  script: { does: string; right: string }[];
}

const MOST_REQUESTS = 100;
const REFRESH_MS = 3_000;
const VERDICTS = { pass: 'good', warn: 'warn', fail: 'bad', unseen: '' };
// biome-ignore format: tables
const COLUMNS: Record<'requests' | 'checks', Column[]> = {
  requests: [['col-id', 'Status'], ['col-main', 'Request'], ['col-more', 'At'], ['col-status', 'Connection'], ['col-actions', 'Fault']],
  checks: [['col-id', 'Verdict'], ['col-main', 'Check'], ['col-more', 'Why'], ['col-status', 'Weight']],
};

/** A card for the content at a path, which `read` renews; quietly, if the timer asks and not the user. */
function part<T>(title: string, path: string, draw: (value: T) => HTMLElement[], ...tools: HTMLElement[]) {
  const box = el('div', { class: 'part' });
  let drawn: string | undefined;
  let reads = 0;
  const read = async (isQuiet = false): Promise<void> => {
    const number = ++reads;
    const reply = await call<T>('GET', path, { isQuiet });
    const isLate = number !== reads;
    if (reply === undefined || isLate || (isQuiet && (!reply.ok || reply.text === drawn))) return;
    drawn = reply.ok ? reply.text : undefined;
    box.replaceChildren(...(reply.ok ? draw(reply.value) : [problem(reply.message, () => read(), reply.status)]));
    if (!reply.ok) announce(`${title}: ${reply.message}`);
  };
  const heading = el('h3', { text: title, tabindex: -1 });
  return { read, element: el('section', { class: 'card', 'aria-label': title }, heading, box, ...tools) };
}

type Change = [method: string, path: string, options?: { body?: string | undefined }];

/** Makes a change, and shows its result. */
async function act<T>(note: Element, words: (value: T) => string, renew: () => Promise<void>, ...change: Change) {
  const reply = await call<T>(...change);
  if (reply === undefined) return;
  report(note, reply.ok ? words(reply.value) : reply.message, !reply.ok);
  if (reply.ok) await renew();
}

const clockNote = el('p', { class: 'note' });
const letDayPass = (): Promise<void> => {
  const body = objectOf({ advance: '"24h"' });
  return act(clockNote, () => 'A day has passed.', () => clock.read(), 'POST', '/lab/clock', { body }); // biome-ignore format: short
};

function clockNow({ ahead }: Clock): HTMLElement[] {
  const text = ahead === 0 ? 'not ahead' : `${duration(ahead)} ahead`;
  return [el('p', { class: 'figure' }, 'This key’s clock: ', el('b', { text }))];
}
const clock = part('Clock', '/lab/clock', clockNow, sendButton('+ 24h', letDayPass), clockNote);

const requestRowId = (requestId: string) => `request-${requestId}`;

function requestRow(recorded: Recorded): HTMLElement {
  const { at, method, target, status, requestId, connection, idempotencyKey, fault, ms, waited = null } = recorded;
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

function recordNow(all: Recorded[]): HTMLElement[] {
  if (all.length === 0) return [state('This key has sent nothing yet.')];
  return [table('Recorded requests', COLUMNS.requests, all.map(requestRow))];
}

const record = part('Record', `/lab/requests?limit=${MOST_REQUESTS}`, recordNow);

/** A button that shows the row of a request in the record, if it is still there. */
function requestLink(requestId: string): HTMLElement {
  const show = () => {
    const found = document.getElementById(requestRowId(requestId));
    if (found === null) return announce('The record no longer has this request.');
    found.scrollIntoView({ block: 'center' });
    found.focus({ preventScroll: true });
  };
  return button(requestId, show, { class: 'small request-link' });
}

function gradeNow({ grade: letter, score, seen, next, checks }: Grade): HTMLElement[] {
  const rows = checks.map(({ id, weight, verdict, why, requestIds }) => {
    const links = requestIds.length === 0 ? '' : el('span', { class: 'links' }, ...requestIds.map(requestLink));
    const mark = badge(verdict, VERDICTS[verdict]);
    return row(COLUMNS.checks, [mark, el('code', { text: id }), [...inline(why), links], String(weight)]);
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

function armDrill(): Promise<void> {
  const words = ({ script: steps }: Drill) => {
    const items = steps.map(({ does, right }) => el('li', {}, el('b', {}, ...inline(does)), ' ', ...inline(right)));
    drillScript.replaceChildren(...items);
    return 'The drill is armed. Let your client list, page, add and order for half a minute.';
  };
  return act(gradeNote, words, () => showLab(), 'POST', '/lab/drill');
}

function resetLab(): Promise<void> {
  drillScript.replaceChildren();
  const body = objectOf({ only: '"key"' });
  const words = () => 'Limits, clock, faults and record of this key start again.';
  return act(gradeNote, words, () => showLab(), 'POST', '/lab/reset', { body });
}

const buttons = [sendButton('Arm the drill', armDrill), sendButton('Reset this key', resetLab)];
const gradeTools = el('div', { class: 'actions' }, ...buttons);

const grade = part('Grade', '/lab/grade', gradeNow);
grade.element.firstChild?.after(gradeTools, gradeNote, drillScript); // before the long table
const parts = [grade, clock, record];

async function showLab(isQuiet = false): Promise<void> {
  await Promise.all(parts.map(({ read }) => read(isQuiet)));
}

/** Refreshes the lab while it is visible. These requests are not listed under “Requests”. */
setInterval(() => {
  const isSeen = document.visibilityState === 'visible' && isVisible(clock.element);
  if (isSeen && wire.key !== '' && wire.standing !== 'refused') void showLab(true);
}, REFRESH_MS);

const labWords = 'For this key alone, on the staging server. Requests to the lab cost nothing of its plan.';

export const labView = {
  title: 'Lab',
  parts: [
    el('p', { class: 'muted', text: labWords }),
    el('div', { class: 'parts' }, ...parts.map(({ element }) => element)),
  ],
  show: () => showLab(),
  load: () => showLab(),
};
