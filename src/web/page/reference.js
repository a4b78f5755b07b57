/** Operations and errors, from the interface description that the service itself gives out. */
import { badge, byId, el, problem } from './dom.js';
import { indented } from './json.js';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

let shown = false;

function resolver(document) {
  const resolve = (part) => {
    if (part?.$ref === undefined) return part;
    return resolve(
      part.$ref
        .slice(2)
        .split('/')
        .reduce((at, name) => at[name.replaceAll('~1', '/').replaceAll('~0', '~')], document),
    );
  };
  return resolve;
}

/** Descriptions have `code`, **bold** and paragraphs; nothing else of Markdown. */
function prose(text = '') {
  return text.split('\n\n').map((paragraph) => {
    const parts = paragraph.split(/(`[^`]+`|\*\*[^*]+\*\*)/);
    const nodes = parts.map((part) => {
      if (part.startsWith('`')) return el('code', { text: part.slice(1, -1) });
      return part.startsWith('**') ? el('strong', { text: part.slice(2, -2) }) : part;
    });
    return el('p', {}, ...nodes);
  });
}

function typeOf(schema, resolve) {
  const it = resolve(schema);
  if (it.enum) return it.enum.join(' | ');
  const range = it.maximum === undefined ? '' : ` ${it.minimum} to ${it.maximum}`;
  const byDefault = it.default === undefined ? '' : `, default ${it.default}`;
  const length = it.maxLength === undefined ? '' : `, ${it.minLength ?? 0} to ${it.maxLength} characters`;
  return `${it.format ?? it.type}${range}${length}${byDefault}`;
}

/** The roles stand written out, since on a narrow screen the cells are laid out as something else than a table. */
function factTable(caption, heads, rows) {
  const head = heads.map((text) => el('th', { scope: 'col', role: 'columnheader', text }));
  const lines = rows.map((cells) => el('tr', { role: 'row' }, ...cells));
  return el(
    'table',
    { class: 'facts', role: 'table', 'aria-label': caption },
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...head)),
    el('tbody', { role: 'rowgroup' }, ...lines),
  );
}

const cell = (...content) => el('td', { role: 'cell' }, ...content);
const rowHead = (...content) => el('th', { scope: 'row', role: 'rowheader' }, ...content);

function fields(caption, rows) {
  const lines = rows.map(([name, required, type, description]) => [
    rowHead(el('code', { text: name }), required ? el('span', { class: 'required', text: ' required' }) : ''),
    cell(type),
    cell(...prose(description)),
  ]);
  return [el('h4', { text: caption }), factTable(caption, ['Name', 'Type', 'Meaning'], lines)];
}

function requestParts(operation, resolve) {
  const parts = [];
  const parameters = (operation.parameters ?? []).map(resolve);
  if (parameters.length > 0) {
    const rows = parameters.map((it) => [
      it.name,
      it.required,
      `${typeOf(it.schema, resolve)} (${it.in})`,
      it.description,
    ]);
    parts.push(...fields('Parameters', rows));
  }
  const media = operation.requestBody?.content['application/json'];
  if (media !== undefined) {
    const schema = resolve(media.schema);
    const rows = Object.entries(schema.properties).map(([name, of]) => [
      name,
      schema.required.includes(name),
      typeOf(of, resolve),
      resolve(of).description,
    ]);
    parts.push(...fields('Body', rows));
    for (const { summary, value } of Object.values(media.examples)) parts.push(example(summary, value));
  }
  return parts;
}

function example(title, value) {
  return el(
    'figure',
    {},
    el('figcaption', { text: title }),
    el('pre', { tabindex: 0, role: 'region', 'aria-label': title, text: indented(JSON.stringify(value)) }),
  );
}

function replyList(operation, resolve) {
  const items = Object.entries(operation.responses).map(([status, part]) => {
    const reply = resolve(part);
    const kind = status < '300' ? 'good' : status < '500' || status === 'default' ? 'warn' : 'bad';
    return el('li', {}, badge(status, kind), el('div', {}, ...prose(reply.description)));
  });
  return el('ul', { class: 'replies' }, ...items);
}

function operationCard(path, method, operation, resolve) {
  const marks = [];
  if (operation.deprecated) marks.push(badge(`deprecated, ends ${operation['x-sunset']}`, 'warn'));
  if (operation['x-stability'] === 'experimental') marks.push(badge('experimental', 'waiting'));
  const success = Object.entries(operation.responses).find(([status]) => status < '300');
  const media = success && resolve(success[1]).content['application/json'];
  return el(
    'details',
    { class: 'operation' },
    el(
      'summary',
      {},
      el('span', { class: `method ${method}`, text: method.toUpperCase() }),
      el('code', { text: path }),
      el('span', { class: 'muted', text: operation.summary }),
      ...marks,
    ),
    el(
      'div',
      { class: 'operation-body' },
      ...prose(operation.description),
      ...requestParts(operation, resolve),
      el('h4', { text: 'Replies' }),
      replyList(operation, resolve),
      ...(media ? [example(`An example of ${success[0]}`, media.example)] : []),
    ),
  );
}

function errorTable(document) {
  const rows = Object.values(document.components.examples).map(({ summary, value }) => [
    cell(String(value.status)),
    rowHead(el('code', { text: value.code })),
    cell(...prose(summary)),
  ]);
  return factTable('Errors', ['Status', 'Code', 'When'], rows);
}

function drawReference(document) {
  const resolve = resolver(document);
  const cards = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => [
      item[method].tags[0],
      operationCard(path, method, item[method], resolve),
    ]),
  );
  const groups = document.tags.map(({ name, description }) =>
    el(
      'section',
      {},
      el('h3', { text: name }),
      ...prose(description),
      ...cards.filter(([tag]) => tag === name).map(([, card]) => card),
    ),
  );
  const servers = document.servers.map(({ url, description }) =>
    el('li', {}, `${description}: `, el('code', { text: url })),
  );
  return [
    el('div', { class: 'prose' }, ...prose(document.info.description)),
    el('ul', { class: 'servers' }, ...servers),
    ...groups,
    el('h3', { text: 'Errors' }),
    errorTable(document),
  ];
}

export async function showReference() {
  if (shown) return;
  const box = byId('description');
  box.replaceChildren(el('p', { class: 'state loading', text: 'Loading…' }));
  try {
    const reply = await fetch('/openapi.json', { credentials: 'omit' });
    if (!reply.ok) throw new Error(`the service answered ${reply.status}`);
    box.replaceChildren(...drawReference(await reply.json()));
    shown = true;
  } catch (error) {
    box.replaceChildren(problem(`The description could not be read: ${error.message}.`));
    box.append(el('button', { type: 'button', text: 'Try again', on: { click: showReference } }));
  }
}
