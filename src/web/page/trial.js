/** The trial of an operation: its parameters as fields, its body as text, its reply, and the next operations. */
import { block, button, el, sendButton } from './dom.js';
import { replyText } from './exchanges.js';
import { field, select, textInput } from './form.js';
import { asTyped, indented } from './json.js';
import { call, isSettled, randomKey } from './wire.js';

/** The interface description, once it was read. */
export const described = { document: undefined };
/** By operationId: the trial, and a function that opens it. */
export const trials = new Map();

export function resolve(part) {
  if (part?.$ref === undefined) return part;
  const names = part.$ref.slice(2).split('/');
  return resolve(names.reduce((at, name) => at[name.replaceAll('~1', '/')], described.document));
}

export const parametersOf = (operation) => (operation.parameters ?? []).map(resolve);
export const bodyOf = (operation) => operation.requestBody?.content['application/json'];

/** Filled in, since a browser may itself send a POST again whose reply was lost; with it that makes one thing. */
const REPEATABLE = 'Idempotency-Key';

function controlOf({ name, schema, example }) {
  const values = resolve(schema).enum;
  const control = values ? select(['', ...values]) : textInput();
  if (name === REPEATABLE) control.value = randomKey();
  else if (example !== undefined) control.value = example;
  return control;
}

function bodyControl(media) {
  const control = el('textarea', { rows: 5, spellcheck: 'false' });
  control.value = indented(JSON.stringify(Object.values(media.examples)[0].value));
  return control;
}

/** Replaces `$response.body#/id` in JSON by its value in the reply: no id loses a digit. */
function filledIn(template, reply) {
  const valueAt = (path) => path.split('/').reduce((at, name) => at?.[name], reply);
  return JSON.stringify(template).replaceAll(/"\$response\.body#\/([^"]+)"/g, (_, path) =>
    asTyped(String(valueAt(path))),
  );
}

/** Sends its fields as they are typed. */
export class Trial {
  constructor(method, path, operation) {
    Object.assign(this, { method: method.toUpperCase(), path, operation });
    this.parameters = new Map(parametersOf(operation).map((parameter) => [parameter.name, controlOf(parameter)]));
    const media = bodyOf(operation);
    this.body = media && bodyControl(media);
    this.reply = el('div', { class: 'reply', role: 'status' });
    const fields = [...this.parameters, ...(media ? [['Body, as JSON', this.body]] : [])];
    this.form = el(
      'form',
      { class: 'fields', 'aria-label': `Try ${operation.summary}`, on: { submit: (event) => this.#send(event) } },
      ...fields.map(([name, control]) => field(name, control).element),
      el('div', { class: 'actions' }, sendButton('Send', undefined, { class: 'primary' })),
    );
    this.element = el(
      'div',
      { class: path.startsWith('/lab') ? 'trial of-lab' : 'trial' },
      el('h4', { text: 'Try it' }),
      this.form,
      this.reply,
    );
  }

  async #send(event) {
    event.preventDefault();
    if (this.sending) return; // its first press is under way
    this.sending = true;
    const repeatable = this.parameters.get(REPEATABLE);
    const key = repeatable?.value;
    const came = await call(this.method, ...this.#request());
    this.sending = false;
    if (came === undefined) return;
    if (key && isSettled(came) && repeatable.value === key) repeatable.value = randomKey();
    const steps = came.ok ? this.#nextSteps(came) : [];
    const next = steps.length > 0 ? [el('div', { class: 'actions' }, el('span', { text: 'Next:' }), ...steps)] : [];
    this.reply.replaceChildren(block(`Reply to ${this.operation.summary}`, replyText(came.exchange)), ...next);
  }

  #request() {
    const isFromRoot = /^\/(v1|lab)\b/.test(this.path); // in the document of a server with a lab
    let target = isFromRoot ? this.path : `/v1${this.path}`;
    const query = new URLSearchParams();
    const headers = {};
    for (const { name, in: where } of parametersOf(this.operation)) {
      const { value } = this.parameters.get(name);
      if (where === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value));
      else if (value !== '' && where === 'query') query.set(name, value);
      else if (value !== '') headers[name] = value;
    }
    return [query.size > 0 ? `${target}?${query}` : target, { headers, body: this.body?.value }];
  }

  /** The next operations, from the links of the document: each button opens one with the values of this reply. */
  #nextSteps({ status, value }) {
    const links = Object.values(resolve(this.operation.responses[status])?.links ?? {}).map(resolve);
    return links.map(({ operationId, description, parameters = {}, requestBody }) =>
      button(description.replace('.', ''), () => {
        const { open, trial } = trials.get(operationId);
        for (const [name, given] of Object.entries(parameters))
          trial.parameters.get(name).value = filledIn(given, value);
        if (requestBody) trial.body.value = indented(filledIn(requestBody, value));
        trial.reply.replaceChildren(); // of the request before
        open();
        trial.element.scrollIntoView();
        trial.form.querySelector('button').focus({ preventScroll: true });
      }),
    );
  }
}
