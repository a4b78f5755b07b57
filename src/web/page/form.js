/** Forms without checks of their own: the input is sent as typed, and the service's messages appear at the fields. */
import { announce, el, mayFocus, note, say, sendButton } from './dom.js';

/** `name: is missing (…); categoryId: must be …` by field; parts that name no field of the form are under ''. */
export function messagesByField(message, fields) {
  const found = new Map();
  for (const part of message.split(/; (?=[A-Za-z]+: )/)) {
    const [, name, rest] = /^([A-Za-z]+): (.*)$/s.exec(part) ?? [];
    const [field, text] = fields.includes(name) ? [name, rest] : ['', part];
    found.set(field, found.has(field) ? `${found.get(field)}; ${text}` : text);
  }
  return found;
}

let fields = 0;
const forms = new Set();

/** Removes the messages of all forms, when another page is shown. */
export function clearForms() {
  for (const form of forms) form.clear();
}

export const textInput = (more = {}) => el('input', { type: 'text', autocomplete: 'off', ...more });
export const idInput = (more = {}) => textInput({ inputmode: 'numeric', ...more });

/** `values`: text, or [value, text]. */
export function select(values, props = {}) {
  const options = values.map((one) => [one].flat()).map(([value, text = value]) => el('option', { value, text }));
  return el('select', props, ...options);
}

/** A control under its label, with a hint, and a place for its error. */
export function field(label, control, hint = '') {
  const id = `field-${++fields}`;
  control.id = id;
  control.setAttribute('aria-describedby', `${id}-hint ${id}-error`);
  const error = el('p', { class: 'field-error', id: `${id}-error` });
  const words = el('p', { class: 'hint', id: `${id}-hint`, text: hint });
  return {
    error,
    element: el('div', { class: 'field' }, el('label', { for: id, text: label }), control, words, error),
  };
}

export class Form {
  /**
   * `fields`: [name, label, control, hint]; `submit(controls)` → reply or undefined; `done(value, reply)` → texts and elements;
   * `emptied`: the field that is then ready for the next one.
   */
  constructor({ title, button, fields, submit, done, emptied, buttons = [] }) {
    Object.assign(this, { controls: {}, errors: {}, submit, done, emptied, title });
    this.note = note();
    forms.add(this);
    this.isDone = false; // whether nothing was typed since the last one was sent
    const parts = fields.map(([name, label, control, hint]) => {
      const { element, error } = field(label, control, hint);
      this.controls[name] = control;
      this.errors[name] = error;
      return element;
    });
    this.element = el(
      'form',
      {
        class: 'fields',
        novalidate: true,
        'aria-label': title,
        on: { submit: (event) => this.#send(event), input: () => (this.isDone = false) },
      },
      ...parts,
      el('div', { class: 'actions' }, sendButton(button, undefined, { class: 'primary' }), ...buttons),
      this.note,
    );
  }

  /** The form in a box that shows only its title until it is opened. */
  drawer() {
    return (this.details = el('details', { class: 'drawer' }, el('summary', { text: this.title }), this.element));
  }

  /** Opens the form, with these values in it. */
  open(values) {
    this.details.open = true;
    for (const [name, value] of Object.entries(values)) this.controls[name].value = value;
    Object.values(this.controls).at(-1).focus();
  }

  async #send(event) {
    event.preventDefault();
    if (this.sending) return; // its first press is under way
    const next = this.controls[this.emptied];
    if (this.isDone && next?.value === '') return announce(this.note.textContent); // Enter pressed once more
    this.sending = true;
    const sent = next?.value;
    const reply = await this.submit(this.controls);
    this.sending = false;
    if (reply === undefined) return;
    this.#mark(reply.ok ? new Map() : messagesByField(reply.message, Object.keys(this.controls)));
    if (!reply.ok) return;
    say(this.note, this.done(reply.value, reply));
    if (next === undefined || next.value !== sent) return; // the next one is typed already
    next.value = '';
    this.isDone = true;
    if (mayFocus(this.element)) next.focus();
  }

  clear() {
    this.isDone = false;
    this.#mark(new Map());
  }

  #mark(messages) {
    this.note.textContent = messages.get('') ?? '';
    this.note.classList.toggle('bad', messages.has(''));
    for (const [name, control] of Object.entries(this.controls)) {
      this.errors[name].textContent = messages.get(name) ?? '';
      control.setAttribute('aria-invalid', String(messages.has(name)));
    }
    if (messages.size === 0) return;
    announce(`${this.title}: ${[...messages].map(([name, text]) => `${name} ${text}`).join('; ')}`);
    const wrong = Object.keys(this.controls).find((name) => messages.has(name));
    if (mayFocus(this.element)) this.controls[wrong]?.focus();
  }
}
