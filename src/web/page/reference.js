/** Every operation, from the interface description that the service itself gives out, to read and to try. */
import { announce, badge, button, byId, el, holdFocus, problem, row, setOff, table, viewHeading } from './dom.js';
import { statusBadge } from './exchanges.js';
import { place } from './place.js';
import { bodyOf, described, parametersOf, resolve, Trial, trials } from './trial.js';
import { setSilence } from './wire.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const FIELDS = [['col-id', 'Name'], ['col-more', 'Type'], ['col-main', 'Meaning']]; // biome-ignore format: a table
const ERRORS = [['col-id', 'Status'], ['col-more', 'Code'], ['col-main', 'When']]; // biome-ignore format: a table

const box = el('div', { id: 'description' });

/** Descriptions have `code`, **bold** and paragraphs; nothing else of Markdown. */
function prose(text = '') {
  return text.split('\n\n').map((paragraph) => {
    const nodes = paragraph.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
      if (part.startsWith('`')) return el('code', { text: part.slice(1, -1) });
      return part.startsWith('**') ? el('strong', { text: part.slice(2, -2) }) : part;
    });
    return el('p', {}, ...nodes);
  });
}

function typeOf(schema) {
  const it = resolve(schema);
  if (it.enum) return it.enum.join(' | ');
  const range = it.maximum === undefined ? '' : ` ${it.minimum ?? ''} to ${it.maximum}`;
  const length = it.maxLength === undefined ? '' : `, ${it.minLength ?? 0} to ${it.maxLength} characters`;
  const byDefault = it.default === undefined ? '' : `, default ${it.default}`;
  return `${it.format ?? it.type}${range}${length}${byDefault}`;
}

/** `rows`: [name, required, type, description]. */
function facts(title, rows) {
  if (rows.length === 0) return [];
  const lines = rows.map(([name, required, type, text]) => {
    const mark = required ? el('span', { class: 'required', text: ' required' }) : '';
    return row(FIELDS, [[el('code', { text: name }), mark], [type], prose(text)]);
  });
  return [el('h4', { text: title }), table(title, FIELDS, lines)];
}

function requestFacts(operation) {
  const parameters = parametersOf(operation).map((it) => [
    it.name,
    it.required,
    `${typeOf(it.schema)} (${it.in})`,
    it.description,
  ]);
  const schema = resolve(bodyOf(operation)?.schema);
  const members = Object.entries(schema?.properties ?? {}).map(([name, of]) => [
    name,
    schema.required?.includes(name),
    typeOf(of),
    resolve(of).description,
  ]);
  return [...facts('Parameters', parameters), ...facts('Body', members)];
}

function replies(operation) {
  const items = Object.entries(operation.responses).map(([status, part]) =>
    el('li', {}, statusBadge(status === 'default' ? 400 : status), el('div', {}, ...prose(resolve(part).description))),
  );
  items.at(-1).querySelector('.badge').textContent = 'other';
  return [el('h4', { text: 'Replies' }), el('ul', { class: 'replies' }, ...items)];
}

function operationCard(path, method, operation) {
  const { operationId: id, summary } = operation;
  const marks = [];
  if (operation.deprecated) marks.push(badge(`deprecated, ends ${operation['x-sunset']}`, 'warn'));
  if (operation['x-stability'] === 'experimental') marks.push(badge('experimental', ''));
  const head = el(
    'summary',
    {},
    el('span', { class: `method ${method}`, text: method.toUpperCase() }),
    el('code', { text: path }),
    el('span', { class: 'hint', text: summary }),
    ...marks,
  );
  const content = el('div', { class: 'content' });
  const card = el('details', { class: 'operation', id: `operation-${id}` }, head, content);
  const trial = new Trial(method, path, operation);
  const open = () => {
    card.open = true;
    if (content.hasChildNodes()) return; // the input and the reply stay
    content.append(...prose(operation.description), ...requestFacts(operation), trial.element, ...replies(operation));
    for (const one of content.querySelectorAll('[data-sends]')) setOff(one); // a wait may have begun or ended meanwhile
  };
  card.addEventListener('toggle', () => {
    if (!card.open) return;
    open();
    history.replaceState(history.state, '', `#reference/${id}`);
  });
  trials.set(id, { open, trial });
  return card;
}

function errorTable() {
  const rows = Object.values(described.document.components.examples).map(({ summary, value }) =>
    row(ERRORS, [[String(value.status)], [el('code', { text: value.code })], prose(summary)]),
  );
  return table('Errors', ERRORS, rows);
}

function drawReference() {
  const all = Object.entries(described.document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => [path, method, item[method]]),
  );
  const groups = described.document.tags.map(({ name, description: text }) => {
    const own = all.filter(([, , operation]) => operation.tags[0] === name);
    return el('section', {}, el('h3', { text: name }), ...prose(text), ...own.map((one) => operationCard(...one)));
  });
  const servers = described.document.servers.map(({ url, description: text }) =>
    el('li', {}, `${text}: `, el('code', { text: url })),
  );
  return [
    el('div', { class: 'prose' }, ...prose(described.document.info.description)),
    el('ul', { class: 'servers' }, ...servers),
    ...groups,
    el('h3', { text: 'errors' }),
    errorTable(),
  ];
}

async function readDescription() {
  if (described.document !== undefined) return;
  const back = holdFocus();
  box.replaceChildren(el('p', { class: 'state', text: 'Loading…' }));
  let isSilent = true;
  try {
    const reply = await fetch('/openapi.json', { credentials: 'omit' });
    isSilent = false;
    if (!reply.ok) throw new Error(`the service answered ${reply.status}`);
    described.document = await reply.json();
    setSilence(false);
    box.replaceChildren(...drawReference());
  } catch (error) {
    setSilence(isSilent);
    const why = `The description could not be read: ${error.message}.`;
    box.replaceChildren(problem(why), button('Try again', readDescription));
    announce(why);
  }
  back(viewHeading());
}

async function showReference() {
  await readDescription();
  const wanted = trials.get(place().id);
  if (wanted === undefined || wanted.trial.element.checkVisibility()) return;
  wanted.open();
  byId(`operation-${place().id}`).scrollIntoView();
}

const source = el(
  'p',
  { class: 'muted' },
  'Read from ',
  el('a', { href: '/openapi.json', text: '/openapi.json' }),
  '.',
);

export const referenceView = { title: 'Reference', parts: [source, box], show: showReference };
