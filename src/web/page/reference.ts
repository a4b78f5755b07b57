/** Every operation, from the interface description that the service itself serves, to read and to try. */
// biome-ignore format: names
import {
  announce, badge, block, byId, disableWhileWaiting, el, inline, problem, redraw, row, state, table,
} from './dom.js';
import { indented } from './json.js';
import { address } from './list.js';
import { statusBadge } from './requests.js';
import { Trial } from './trial.js';
import { setSilence } from './wire.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const FIELDS = [['col-id', 'Name'], ['col-more', 'Type'], ['col-main', 'Meaning']]; // biome-ignore format: a table

/** The interface description, once it was read. */
let description;
/** By operationId: `open`, which opens the operation, and its `trial`. */
const operations = new Map();

function resolve(part) {
  if (part?.$ref === undefined) return part;
  return resolve(part.$ref.slice(2).split('/').reduce((at, name) => at[name], description)); // biome-ignore format: short
}

const prose = (text = '') => text.split('\n\n').map((paragraph) => el('p', {}, ...inline(paragraph)));

function typeOf(schema) {
  const it = resolve(schema);
  if (it.enum) return it.enum.join(' | ');
  if (it.anyOf) return it.anyOf.map(typeOf).join(' | ');
  if (it.items) return `list of ${typeOf(it.items)}`;
  const range = it.maximum === undefined ? '' : ` ${it.minimum ?? ''} to ${it.maximum}`;
  const length = it.maxLength === undefined ? '' : `, ${it.minLength ?? 0} to ${it.maxLength} characters`;
  const byDefault = it.default === undefined ? '' : `, default ${it.default}`;
  return `${it.format ?? [it.type].flat().join(' | ')}${range}${length}${byDefault}`;
}

/** The members of an object, or of the objects in a list, as rows of `facts`; those of objects within behind a dot. */
function membersOf(schema, prefix = '') {
  const { items, allOf = [], properties = {}, required = [] } = resolve(schema) ?? {};
  if (items) return membersOf(items, `${prefix}[].`);
  const own = Object.entries(properties).flatMap(([name, part]) => {
    const { description: text } = part.description ? part : resolve(part);
    const path = `${prefix}${name}`;
    const inner = membersOf(part, resolve(part).items ? path : `${path}.`);
    return [[path, required.includes(name), typeOf(part), text], ...inner];
  });
  const all = [...allOf.flatMap((part) => membersOf(part, prefix)), ...own];
  return [...new Map(all.map((member) => [member[0], member])).values()]; // of the same name, the last holds
}

/** `rows`: [name, required, type, description]. */
function facts(title, rows) {
  if (rows.length === 0) return [];
  const lines = rows.map(([name, isRequired, type, text]) => {
    const mark = isRequired ? el('span', { class: 'required', text: ' required' }) : '';
    return row(FIELDS, [[el('code', { text: name }), mark], type, prose(text)]);
  });
  return [el('h4', { text: title }), table(title, FIELDS, lines)];
}

/** The names of a reply's headers, its own first, as a line that opens their table. */
function headersOf(status, headers) {
  const rows = Object.entries(headers).map(([name, part]) => {
    const { required, schema, description: text } = resolve(part);
    return [name, required, typeOf(schema), text];
  });
  rows.reverse();
  const [, list] = facts(`Headers of ${status}`, rows);
  const names = rows.map(([name]) => name).join(', ');
  return el('details', {}, el('summary', { class: 'fold', text: `Headers: ${names}` }), list);
}

/** A reply with its examples, its fields and its headers. That of a success is open. */
function replyOf(operation, [status, part]) {
  const { description: text, content, headers } = resolve(part);
  const { schema, example, examples = {} } = content?.['application/json'] ?? {};
  const values = example === undefined ? Object.values(examples).map((one) => resolve(one).value) : [example];
  const badgeOf = status === 'default' ? badge('other', 'warn') : statusBadge(Number(status));
  const outcome = [badgeOf, el('div', {}, ...prose(text))];
  const label = `${operation.summary}, example of ${status}`;
  const shown = values.map((value) => block([label, value.code].join(' '), indented(JSON.stringify(value))));
  const examplesOf = schema && [el('h4', { text: values.length > 1 ? 'Examples' : 'Example' }), ...shown];
  const fields = facts(`Fields of ${status}`, membersOf(schema));
  const body = el('div', { class: 'content' }, ...(examplesOf ?? []), ...fields, headersOf(status, headers));
  return el(
    'li',
    {},
    el('details', { open: status.startsWith('2') }, el('summary', { class: 'outcome' }, ...outcome), body),
  );
}

/** Opens an operation, filled when it is opened first: its input and its reply stay. */
function operationCard(path, method, operation) {
  const { operationId: id, summary, deprecated } = operation;
  const parameters = (operation.parameters ?? []).map(resolve).map((it) => ({ ...it, schema: resolve(it.schema) }));
  const media = operation.requestBody?.content['application/json'];
  const head = el(
    'summary',
    {},
    el('span', { class: `method ${method}`, text: method.toUpperCase() }),
    el('code', { text: path }),
    el('span', { class: 'hint', text: summary }),
    deprecated ? badge(`deprecated, ends ${operation['x-sunset']}`, 'warn') : undefined,
    operation['x-stability'] === 'experimental' ? badge('experimental', '') : undefined,
  );
  const content = el('div', { class: 'content' });
  const card = el('details', { class: 'operation', id: `operation-${id}` }, head, content);
  const linksOf = (status) => Object.values(resolve(operation.responses[status])?.links ?? {}).map(resolve);
  const openOther = (other) => {
    operations.get(other).open();
    return operations.get(other).trial;
  };
  const trial = new Trial({ method, path, summary, parameters, media, linksOf, open: openOther });
  const open = () => {
    card.open = true;
    if (content.hasChildNodes()) return;
    const given = parameters.map((it) => [it.name, it.required, `${typeOf(it.schema)} (${it.in})`, it.description]);
    const request = [...facts('Parameters', given), ...facts('Body', membersOf(media?.schema))];
    const replies = Object.entries(operation.responses).map((one) => replyOf(operation, one));
    const list = [el('h4', { text: 'Replies' }), el('ul', { class: 'replies' }, ...replies)];
    content.append(...prose(operation.description), ...request, trial.element, ...list);
    for (const one of content.querySelectorAll('[data-sends]')) disableWhileWaiting(one);
  };
  card.addEventListener('toggle', () => {
    if (!card.open) return;
    open();
    history.replaceState(history.state, '', `#reference/${id}`);
  });
  operations.set(id, { open, trial });
  return card;
}

function drawReference() {
  const all = Object.entries(description.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => [path, method, item[method]]),
  );
  const groups = description.tags.map(({ name, description: text }) => {
    const own = all.filter(([, , operation]) => operation.tags[0] === name);
    return el('section', {}, el('h3', { text: name }), ...prose(text), ...own.map((one) => operationCard(...one)));
  });
  const servers = description.servers.map(({ url, description: text }) => {
    const label = description.servers.length === 1 ? 'Base address' : text;
    return el('li', {}, `${label}: `, el('code', { text: url }));
  });
  const about = el('div', { class: 'content prose' }, ...prose(description.info.description));
  return [
    el('ul', { class: 'servers' }, ...servers),
    el('details', { class: 'drawer' }, el('summary', { text: 'What holds for all operations' }), about),
    ...groups,
  ];
}

const box = el('div', { id: 'description' });

async function readDescription() {
  if (description !== undefined) return;
  redraw(box, [state('Loading…')]);
  let isSilent = true;
  try {
    const reply = await fetch('/openapi.json', { credentials: 'omit' });
    isSilent = false;
    if (!reply.ok) throw new Error(`the service answered ${reply.status}`);
    description = await reply.json();
    redraw(box, drawReference());
  } catch (error) {
    const why = `The description could not be read: ${error.message}.`;
    redraw(box, [problem(why, readDescription)]);
    announce(why);
  }
  setSilence(isSilent);
}

async function showReference() {
  await readDescription();
  const wanted = operations.get(address().id);
  if (wanted === undefined || wanted.trial.element.checkVisibility()) return;
  wanted.open();
  byId(`operation-${address().id}`).scrollIntoView();
}

const link = el('a', { href: '/openapi.json', text: '/openapi.json' });
const source = el('p', { class: 'muted' }, 'Read from ', link, '.');

export const referenceView = { title: 'Reference', parts: [source, box], show: showReference };
