/** The trial of an operation in the reference: its parameters and its body as fields, sent as they are typed. */
import { announce, el, sendButton } from './dom.ts';
import { type Control, field, formOf, select, textInput } from './form.ts';
import { indented } from './json.ts';
import type { Parameter } from './openapi.ts';
import { replyTo } from './requests.ts';
import { call, isSettled, randomKey } from './wire.ts';

/** Filled in, since a browser may itself repeat a POST whose reply was lost; with it that makes one thing. */
const REPEATABLE = 'Idempotency-Key';

function controlOf({ name, schema, example = '' }: Parameter): Control {
  const control = schema.enum ? select(['', ...schema.enum]) : textInput();
  control.value = name === REPEATABLE ? randomKey() : String(example);
  return control;
}

interface Options {
  method: string;
  path: string;
  summary: string;
  parameters: Parameter[];
  /** The example of the body, as JSON; undefined if the operation takes none. */
  body: string | undefined;
}

export class Trial {
  readonly element: HTMLElement;
  readonly #options: Options;
  readonly #fields: { parameter: Parameter; control: Control; mark: (message?: string) => void }[] = [];
  readonly #body = el('textarea', { rows: 5, spellcheck: 'false' });
  readonly #reply = el('div', { class: 'reply', role: 'status' });

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
    const form = formOf(`Try ${summary}`, parts, () => this.#send());
    const props = { class: path.startsWith('/lab') ? 'trial of-lab' : 'trial' };
    this.element = el('div', props, el('h4', { text: 'Try it' }), form, this.#reply);
  }

  async #send(): Promise<void> {
    if (this.#isIncomplete()) return;
    const { method, summary } = this.#options;
    const repeatable = this.#fields.find(({ parameter }) => parameter.name === REPEATABLE)?.control;
    const key = repeatable?.value;
    const came = await call(method.toUpperCase(), ...this.#request());
    if (came === undefined) return;
    if (key && isSettled(came) && repeatable.value === key) repeatable.value = randomKey();
    this.#reply.replaceChildren(...replyTo(came.exchange, `Reply to ${summary}`));
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
}
