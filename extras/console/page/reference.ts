/** Every operation, from the interface description that the service itself serves, to read and to try. */
// biome-ignore format: names
import {
  announce, badge, block, type Column, disableWhileWaiting, el, inline, problem, row, state, table,
} from './dom.ts';
import { indented } from './json.ts';
import { address } from './list.ts';
import type { Document, Media, Operation, Parameter, Ref, Response, Schema } from './openapi.ts';
import { statusBadge } from './requests.ts';
import { Trial } from './trial.ts';
import { setSilence } from './wire.ts';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const JSON_TYPE = 'application/json';
const FIELDS: Column[] = [
  ['col-id', 'Name'],
  ['col-more', 'Type'],
  ['col-main', 'Meaning'],
];

/** The interface description, once it was read. */
let description: Document | undefined;

function resolve<T extends object>(part: T | Ref): T {
  if (!('$ref' in part)) return part;
  const within = (at: unknown, name: string) => (at as Record<string, unknown>)[name];
  return resolve(part.$ref.slice(2).split('/').reduce(within, description) as T | Ref);
}

const prose = (text = '') => text.split('\n\n').map((paragraph) => el('p', {}, ...inline(paragraph)));

function typeOf(schema: Schema | Ref): string {
  const it = resolve<Schema>(schema);
  if (it.enum) return it.enum.join(' | ');
  if (it.anyOf) return it.anyOf.map(typeOf).join(' | ');
  if (it.items) return `list of ${typeOf(it.items)}`;
  const range = it.maximum === undefined ? '' : ` ${it.minimum ?? ''} to ${it.maximum}`;
  const length = it.maxLength === undefined ? '' : `, ${it.minLength ?? 0} to ${it.maxLength} characters`;
  const byDefault = it.default === undefined ? '' : `, default ${it.default}`;
  return `${it.format ?? [it.type].flat().join(' | ')}${range}${length}${byDefault}`;
}

type Fact = [name: string, isRequired: boolean | undefined, type: string, text: string | undefined];

/** The members of an object, or of the objects in a list; those of objects within after a dot. */
function membersOf(schema: Schema | Ref | undefined, prefix = ''): Fact[] {
  if (schema === undefined) return [];
  const { items, allOf = [], properties = {}, required = [] } = resolve<Schema>(schema);
  if (items) return membersOf(items, `${prefix}[].`);
  const own = Object.entries(properties).flatMap(([name, part]) => {
    const whole = resolve<Schema>(part);
    const text = 'description' in part ? part.description : whole.description;
    const path = `${prefix}${name}`;
    const fact: Fact = [path, required.includes(name), typeOf(whole), text];
    return [fact, ...membersOf(whole, whole.items ? path : `${path}.`)];
  });
  const all = [...allOf.flatMap((part) => membersOf(part, prefix)), ...own];
  return [...new Map(all.map((member) => [member[0], member])).values()]; // of the same name, the last holds
}

function facts(title: string, rows: Fact[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const lines = rows.map(([name, isRequired, type, text]) => {
    const mark = isRequired ? el('span', { class: 'required', text: ' required' }) : '';
    return row(FIELDS, [[el('code', { text: name }), mark], type, prose(text)]);
  });
  return [el('h4', { text: title }), table(title, FIELDS, lines)];
}

function examplesOf({ example, examples = {} }: Media): unknown[] {
  if (example !== undefined) return [example];
  return Object.values(examples).map((one) => resolve<{ value: unknown }>(one).value);
}

/** A reply with its examples and its fields. That of a success is open. */
function replyOf({ summary }: Operation, status: string, part: Response | Ref): HTMLElement {
  const { description: text, content } = resolve<Response>(part);
  const media = content?.[JSON_TYPE];
  const label = `${summary}, example of ${status}`;
  const examples = (media ? examplesOf(media) : []).map((value) => {
    const { code = '' } = value as { code?: string };
    return block(`${label} ${code}`.trim(), indented(JSON.stringify(value)));
  });
  const title = media && el('h4', { text: examples.length > 1 ? 'Examples' : 'Example' });
  const fields = facts(`Fields of ${status}`, membersOf(media?.schema));
  const mark = status === 'default' ? badge('other', 'warn') : statusBadge(Number(status));
  const head = el('summary', {}, mark, ' ', el('div', {}, ...prose(text)));
  const body = el('div', { class: 'content' }, title, ...examples, ...fields);
  return el('li', {}, el('details', { open: status.startsWith('2') }, head, body));
}

/** Opens an operation, filled when it is opened first: its input and its reply stay. */
function operationCard(path: string, method: string, operation: Operation): HTMLElement {
  const { operationId: id, summary, deprecated, responses } = operation;
  const parameters = (operation.parameters ?? []).map((one) => {
    const it = resolve<Parameter<Schema | Ref>>(one);
    return { ...it, schema: resolve<Schema>(it.schema) };
  });
  const media =
    operation.requestBody && resolve<{ content: Record<string, Media> }>(operation.requestBody).content[JSON_TYPE];
  const head = el(
    'summary',
    {},
    badge(method.toUpperCase(), method),
    ' ',
    el('code', { text: path }),
    ' ',
    el('span', { class: 'hint', text: summary }),
    ' ',
    deprecated ? badge(`deprecated, ends ${operation['x-sunset']}`, 'warn') : undefined,
  );
  const content = el('div', { class: 'content' });
  const card = el('details', { class: 'operation', id: `operation-${id}` }, head, content);
  const fill = () => {
    const body = media && JSON.stringify(examplesOf(media)[0]);
    const trial = new Trial({ method, path, summary, parameters, body });
    const given = parameters.map((it): Fact => {
      return [it.name, it.required, `${typeOf(it.schema)} (${it.in})`, it.description];
    });
    const request = [...facts('Parameters', given), ...facts('Body', membersOf(media?.schema))];
    const replies = Object.entries(responses).map(([status, part]) => replyOf(operation, status, part));
    const list = [el('h4', { text: 'Replies' }), el('ul', { class: 'replies' }, ...replies)];
    content.append(...prose(operation.description), ...request, trial.element, ...list);
    for (const one of content.querySelectorAll('[data-sends]')) disableWhileWaiting(one);
  };
  card.addEventListener('toggle', () => {
    if (!card.open) return;
    if (!content.hasChildNodes()) fill();
    const isShown = address().view === 'reference'; // this event comes late: the address may name another view by now
    if (isShown) history.replaceState(null, '', `#reference/${id}`);
  });
  return card;
}

function drawReference({ paths, tags, info }: Document): HTMLElement[] {
  const all = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, operation: item[method] })),
  );
  const groups = tags.map(({ name, description: text }) => {
    const own = all.filter(({ operation }) => operation.tags[0] === name);
    const cards = own.map(({ path, method, operation }) => operationCard(path, method, operation));
    return el('section', {}, el('h3', { text: name }), ...prose(text), ...cards);
  });
  const about = el('div', { class: 'content prose' }, ...prose(info.description));
  return [
    el('details', { class: 'drawer' }, el('summary', { text: 'What holds for all operations' }), about),
    ...groups,
  ];
}

const box = el('div', { id: 'description' });
let reading: Promise<void> | undefined;

/** Once, however often the view is shown meanwhile: a second drawing would lose what was typed. */
function readDescription(): Promise<void> {
  reading ??= fetchDescription().finally(() => {
    if (description === undefined) reading = undefined;
  });
  return reading;
}

async function fetchDescription(): Promise<void> {
  box.replaceChildren(state('Loading…'));
  let isSilent = true;
  try {
    const reply = await fetch('/openapi.json', { credentials: 'omit' });
    isSilent = false;
    if (!reply.ok) throw new Error(`the service answered ${reply.status}`);
    const read: Document = await reply.json();
    description = read;
    box.replaceChildren(...drawReference(read));
  } catch (error) {
    const why = `The description could not be read: ${error instanceof Error ? error.message : error}.`;
    box.replaceChildren(problem(why, readDescription));
    announce(why);
  }
  setSilence(isSilent);
}

async function showReference(): Promise<void> {
  await readDescription();
  const { view, id = '' } = address();
  const wanted = document.getElementById(`operation-${id}`);
  if (view !== 'reference' || !(wanted instanceof HTMLDetailsElement) || wanted.open) return;
  wanted.open = true;
  wanted.scrollIntoView();
}

const link = el('a', { href: '/openapi.json', text: '/openapi.json' });
const source = el('p', { class: 'muted' }, 'Read from ', link, '.');

export const referenceView = { title: 'Reference', parts: [source, box], show: showReference, load: showReference };
