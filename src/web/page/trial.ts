/** The trial of an operation in the reference: its parameters and its body as fields, sent as they are typed. */
import { button, el, sendButton } from './dom.js';
import { field, formOf, select, textInput } from './form.js';
import { asTyped, indented } from './json.js';
import { replyTo } from './requests.js';
import { call, isSettled, randomKey } from './wire.js';

/** Filled in, since a browser may itself repeat a POST whose reply was lost; with it that makes one thing. */
const REPEATABLE = 'Idempotency-Key';

function controlOf({ name, schema, example = '' }) {
  const control = schema.enum ? select(['', ...schema.enum]) : textInput();
  control.value = name === REPEATABLE ? randomKey() : example;
  return control;
}

/** Replaces `$response.body#/id` in JSON by its value in the reply: no id loses a digit. */
function filledIn(template, reply) {
  const valueAt = (path) => path.split('/').reduce((at, name) => at?.[name], reply);
  const reference = /"\$response\.body#\/([^"]+)"/g;
  return JSON.stringify(template).replaceAll(reference, (_, path) => asTyped(String(valueAt(path))));
}

export class Trial {
  /** All parts without `$ref`. `linksOf(status)`: the links of that reply; `open(operationId)` → the trial there. */
  constructor({ method, path, summary, parameters, media, linksOf, open }) {
    Object.assign(this, { method: method.toUpperCase(), path, summary, parameters, linksOf, open });
    this.controls = new Map(parameters.map((parameter) => [parameter.name, controlOf(parameter)]));
    this.body = media && el('textarea', { rows: 5, spellcheck: 'false' });
    if (media) this.body.value = indented(JSON.stringify(Object.values(media.examples)[0].value));
    this.reply = el('div', { class: 'reply', role: 'status' });
    const fields = [...this.controls, ...(media ? [['Body, as JSON', this.body]] : [])];
    const parts = fields.map(([name, control]) => field(name, control).element);
    parts.push(el('div', { class: 'actions' }, sendButton('Send', undefined, { class: 'primary' })));
    this.form = formOf(`Try ${summary}`, parts, () => this.#send());
    const props = { class: path.startsWith('/lab') ? 'trial of-lab' : 'trial' };
    this.element = el('div', props, el('h4', { text: 'Try it' }), this.form, this.reply);
  }

  async #send() {
    const repeatable = this.controls.get(REPEATABLE);
    const key = repeatable?.value;
    const came = await call(this.method, ...this.#request());
    if (came === undefined) return;
    if (key && isSettled(came) && repeatable.value === key) repeatable.value = randomKey();
    const steps = came.ok ? this.#nextSteps(came) : [];
    const next = steps.length > 0 ? [el('div', { class: 'actions' }, el('span', { text: 'Next:' }), ...steps)] : [];
    this.reply.replaceChildren(...replyTo(came.exchange, `Reply to ${this.summary}`), ...next);
  }

  #request() {
    const isFromRoot = /^\/(v1|lab)\b/.test(this.path); // in the document of a server with a lab
    let target = isFromRoot ? this.path : `/v1${this.path}`;
    const query = new URLSearchParams();
    const headers = {};
    for (const { name, in: where } of this.parameters) {
      const { value } = this.controls.get(name);
      if (where === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value));
      else if (value !== '' && where === 'query') query.set(name, value);
      else if (value !== '') headers[name] = value;
    }
    const options = { headers, body: this.body?.value, showsLimit: true };
    return [query.size > 0 ? `${target}?${query}` : target, options];
  }

  /** The next operations, from the links of the document: each button opens one with the values of this reply. */
  #nextSteps({ status, value }) {
    return this.linksOf(status).map(({ operationId, description, parameters = {}, requestBody }) =>
      button(description.replace('.', ''), () => {
        const trial = this.open(operationId);
        for (const [name, given] of Object.entries(parameters)) trial.controls.get(name).value = filledIn(given, value);
        if (requestBody) trial.body.value = indented(filledIn(requestBody, value));
        trial.reply.replaceChildren(); // of the request before
        trial.element.scrollIntoView();
        trial.form.querySelector('button').focus({ preventScroll: true });
      }),
    );
  }
}
