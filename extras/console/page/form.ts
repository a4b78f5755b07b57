/**
 * Forms send the input as it was typed, and show the service's messages at the fields. They check one thing themselves:
 * a field that must not be empty costs no request.
 */
import { announce, type Content, el, type Props, report, sendButton } from './dom.ts';
import { mayFocus } from './focus.ts';
import type { Reply, Success } from './wire.ts';

export type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
/** By field; what belongs to none of them is under ''. */
type Messages = Record<string, string>;

/** Splits `name: is missing (…); categoryId: must be …`. */
function messagesByField(message: string, fields: string[]): Messages {
  const found: Messages = {};
  for (const part of message.split(/; (?=[A-Za-z]+: )/)) {
    const [, name = '', rest = ''] = /^([A-Za-z]+): (.*)$/s.exec(part) ?? [];
    const [field, text] = fields.includes(name) ? [name, rest] : ['', part];
    found[field] = found[field] ? `${found[field]}; ${text}` : text;
  }
  return found;
}

let fields = 0;
const forms = new Set<{ mark(messages: Messages): void }>();

/** Removes the messages of all forms, when another page is shown. */
export function clearForms(): void {
  for (const form of forms) form.mark({});
}

export const textInput = (more: Props = {}) => el('input', { type: 'text', autocomplete: 'off', ...more });
export const idInput = (more: Props = {}) => textInput({ inputmode: 'numeric', ...more });

type Option = string | [value: string, text: string];
export function select(options: readonly Option[], props: Props = {}) {
  const all = options.map((one) => (typeof one === 'string' ? [one, one] : one));
  return el('select', props, ...all.map(([value, text]) => el('option', { value, text })));
}

/** A control under its label, with a hint, and a place for its error. */
function field(label: string, control: Control, hint = '') {
  const id = `field-${++fields}`;
  control.id = id;
  control.setAttribute('aria-describedby', `${id}-hint ${id}-error`);
  const words = el('p', { class: 'hint', id: `${id}-hint`, text: hint });
  const error = el('p', { class: 'field-error', id: `${id}-error` });
  const element = el('div', { class: 'field' }, el('label', { for: id, text: label }), control, words, error);
  const mark = (message?: string) => {
    error.textContent = message ?? '';
    control.setAttribute('aria-invalid', String(message !== undefined));
  };
  return { element, mark };
}

interface Field<Name extends string> {
  name: Name;
  label: string;
  control: Control;
  hint?: string;
  /** What to do about a field that is empty; without it that is fine. */
  needed?: string;
}

interface Options<Name extends string, Value> {
  title: string;
  button: string;
  fields: Field<Name>[];
  submit(controls: Record<Name, Control>): Promise<Reply<Value> | undefined>;
  /** What to say then. */
  done(value: Value, reply: Success<Value>): Content;
  /** The field that is then ready for the next one. */
  emptied?: Name;
}

export class Form<Name extends string, Value> {
  readonly note = el('p', { class: 'note' });
  readonly element: HTMLFormElement;
  readonly controls: Record<Name, Control>;
  readonly #options: Options<Name, Value>;
  readonly #marks = new Map<string, (message?: string) => void>();

  constructor(options: Options<Name, Value>) {
    this.#options = options;
    const { title, button } = options;
    this.controls = Object.fromEntries(
      options.fields.map(({ name, control }) => [name, control]),
    ) as typeof this.controls;
    const parts = options.fields.map(({ name, label, control, hint }) => {
      const { element, mark } = field(label, control, hint);
      this.#marks.set(name, mark);
      return element;
    });
    const actions = el('div', { class: 'actions' }, sendButton(button, undefined, { class: 'primary' }));
    const submit = (event: SubmitEvent) => {
      event.preventDefault();
      void this.#send();
    };
    const props = { class: 'fields', novalidate: true, 'aria-label': title, on: { submit } };
    this.element = el('form', props, ...parts, actions, this.note);
    forms.add(this);
  }

  /** The form in a box that shows only its title until it is opened. */
  drawer(): HTMLElement {
    return el('details', { class: 'drawer' }, el('summary', { text: this.#options.title }), this.element);
  }

  /** Ignored while the one before is under way. */
  async #send(): Promise<void> {
    if (this.element.ariaBusy) return;
    const missing = this.#missing();
    this.mark(missing);
    if (Object.keys(missing).length > 0) return;
    const { submit, done, emptied } = this.#options;
    const next = emptied && this.controls[emptied];
    const sent = next?.value;
    this.element.ariaBusy = 'true';
    const reply = await submit(this.controls).finally(() => (this.element.ariaBusy = null));
    if (reply === undefined) return;
    if (!reply.ok) return this.mark(messagesByField(reply.message, Object.keys(this.controls)));
    report(this.note, done(reply.value, reply));
    if (next === undefined || next.value !== sent) return; // the next one is typed already
    next.value = '';
    if (mayFocus(this.element)) next.focus();
  }

  #missing(): Messages {
    const missing = ({ control, needed }: Field<Name>) => needed !== undefined && control.value === '';
    return Object.fromEntries(this.#options.fields.filter(missing).map(({ name, needed = '' }) => [name, needed]));
  }

  mark(messages: Messages): void {
    const { title, fields } = this.#options;
    this.note.textContent = messages[''] ?? '';
    this.note.classList.toggle('bad', messages[''] !== undefined);
    for (const [name, mark] of this.#marks) mark(messages[name]);
    const all = Object.entries(messages);
    if (all.length === 0) return;
    const labelOf = (name: string) => fields.find((one) => one.name === name)?.label ?? '';
    announce(`${title}: ${all.map(([name, text]) => `${labelOf(name)} ${text}`).join('; ')}`);
    if (mayFocus(this.element)) fields.find(({ name }) => name in messages)?.control.focus();
  }
}
