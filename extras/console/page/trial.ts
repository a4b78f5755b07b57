/** The trial of an operation in the reference: its parameters and its body as fields, sent as they are typed. */
import { announce, button, el, sendButton } from './dom.ts';
import { type Control, field, formOf, select, textInput } from './form.ts';
import { asTyped, indented } from './json.ts';
import type { Link, Parameter } from './openapi.ts';
import { replyTo } from './requests.ts';
import { call, isSettled, randomKey, type Success } from './wire.ts';

/** Filled in, since a browser may itself repeat a POST whose reply was lost; with it that makes one thing. */
const REPEATABLE = 'Idempotency-Key';

function controlOf({ name, schema, example = '' }: Parameter): Control {
  const control = schema.enum ? select(['', ...schema.enum]) : textInput();
  control.value = name === REPEATABLE ? randomKey() : String(example);
  return control;
}

/** Replaces `$response.body#/id` in JSON by its value in the reply: no id loses a digit. */
function filledIn(template: unknown, reply: unknown): string {
  const member = (at: unknown, name: string) => (at as Record<string, unknown> | undefined)?.[name];
  const valueAt = (path: string) => path.split('/').reduce(member, reply);
  const reference = /"\$response\.body#\/([^"]+)"/g;
  return JSON.stringify(template).replaceAll(reference, (_, path) => asTyped(String(valueAt(path))));
}

interface Options {
  method: string;
  path: string;
  summary: string;
  parameters: Parameter[];
  /** The example of the body, as JSON; undefined if the operation takes none. */
  body: string | undefined;
  /** The links of the reply with this status. */
  linksOf(status: number): Link[];
  /** Opens another operation. */
  open(operationId: string): Trial | undefined;
}

export class Trial {
  readonly element: HTMLElement;
  readonly #options: Options;
  readonly #fields: { parameter: Parameter; control: Control; mark: (message?: string) => void }[] = [];
  readonly #body = el('textarea', { rows: 5, spellcheck: 'false' });
  readonly #reply = el('div', { class: 'reply', role: 'status' });
  readonly #form: HTMLFormElement;

  /** All parts without `$ref`. */
  constructor(options: Options) {
    this.#options = options;
    const { path, summary, parameters, body } = options;
    const parts = parameters.map((parameter) => {
      const control = controlOf(parameter);
      const { element, mark } = field(parameter.name, control);
      this.#fields.push({ parameter, control, mark });
      return element;
    });
    if (body !== undefined) {
      this.#body.value = indented(body);
      parts.push(field('Body, as JSON', this.#body).element);
    }
    parts.push(el('div', { class: 'actions' }, sendButton('Send', undefined, { class: 'primary' })));
    this.#form = formOf(`Try ${summary}`, parts, () => this.#send());
    const props = { class: path.startsWith('/lab') ? 'trial of-lab' : 'trial' };
    this.element = el('div', props, el('h4', { text: 'Try it' }), this.#form, this.#reply);
  }

  async #send(): Promise<void> {
    if (this.#isIncomplete()) return;
    const { method, summary } = this.#options;
    const repeatable = this.#fields.find(({ parameter }) => parameter.name === REPEATABLE)?.control;
    const key = repeatable?.value;
    const came = await call(method.toUpperCase(), ...this.#request());
    if (came === undefined) return;
    if (key && isSettled(came) && repeatable.value === key) repeatable.value = randomKey();
    const steps = came.ok ? this.#nextSteps(came) : [];
    const next = steps.length > 0 ? [el('div', { class: 'actions' }, el('span', { text: 'Next:' }), ...steps)] : [];
    this.#reply.replaceChildren(...replyTo(came.exchange, `Reply to ${summary}`), ...next);
  }

  /** Without a part of its path a request would be one for another operation. */
  #isIncomplete(): boolean {
    const isEmpty = ({ parameter, control }: { parameter: Parameter; control: Control }) =>
      parameter.in === 'path' && control.value === '';
    for (const one of this.#fields) one.mark(isEmpty(one) ? 'Enter it: it is in the path.' : undefined);
    const empty = this.#fields.find(isEmpty);
    if (empty === undefined) return false;
    announce(`Enter ${empty.parameter.name}: it is in the path.`);
    empty.control.focus();
    return true;
  }

  #request(): [target: string, options: object] {
    const { path, body } = this.#options;
    const isFromRoot = /^\/(v1|lab)\b/.test(path); // in the document of a server with a lab
    let target = isFromRoot ? path : `/v1${path}`;
    const query = new URLSearchParams();
    const headers: Record<string, string> = {};
    for (const { parameter, control } of this.#fields) {
      const { name, in: where } = parameter;
      const { value } = control;
      if (where === 'path') target = target.replace(`{${name}}`, encodeURIComponent(value));
      else if (value !== '' && where === 'query') query.set(name, value);
      else if (value !== '') headers[name] = value;
    }
    const options = { headers, body: body && this.#body.value, showsLimit: true };
    return [String(query) === '' ? target : `${target}?${query}`, options];
  }

  /** The next operations, from the links of the document: each button opens one with the values of this reply. */
  #nextSteps({ status, value }: Success<unknown>): HTMLElement[] {
    return this.#options
      .linksOf(status)
      .map((link) =>
        button(link.description.replace('.', ''), () => this.#options.open(link.operationId)?.begin(link, value)),
      );
  }

  /** Fills in what a link of another operation's reply says. */
  begin({ parameters = {}, requestBody }: Link, reply: unknown): void {
    for (const { parameter, control } of this.#fields) {
      if (parameter.name in parameters) control.value = filledIn(parameters[parameter.name], reply);
    }
    if (requestBody) this.#body.value = indented(filledIn(requestBody, reply));
    this.#reply.replaceChildren(); // of the request before
    this.element.scrollIntoView();
    this.#form.querySelector('button')?.focus({ preventScroll: true });
  }
}
