/** Forms without checks of their own: the input is sent as typed, and the service's messages appear at the fields. */
import { announce, el, mayFocus, report, sendButton } from './dom.js';

/** `name: is missing (…); categoryId: must be …` by field; parts that name no field of the form are under ''. */
function messagesByField(message, fields) {
  const found = {};
  for (const part of message.split(/; (?=[A-Za-z]+: )/)) {
    const [, name, rest] = /^([A-Za-z]+): (.*)$/s.exec(part) ?? [];
    const [field, text] = fields.includes(name) ? [name, rest] : ['', part];
    found[field] = found[field] ? `${found[field]}; ${text}` : text;
  }
  return found;
}

let fields = 0;
const forms = new Set();

/** Removes the messages of all forms, when another page is shown. */
export function clearForms() {
  for (const form of forms) form.mark({});
}

export const textInput = (more = {}) => el('input', { type: 'text', autocomplete: 'off', ...more });
export const idInput = (more = {}) => textInput({ inputmode: 'numeric', ...more });

/** `values`: text, or [value, text]. */
export const optionsOf = (values) =>
  values.map((one) => [one].flat()).map(([value, text = value]) => el('option', { value, text }));
export const select = (values, props = {}) => el('select', props, ...optionsOf(values));

/** A control under its label, with a hint, and a place for its error. */
export function field(label, control, hint = '') {
  const id = `field-${++fields}`;
  control.id = id;
  control.setAttribute('aria-describedby', `${id}-hint ${id}-error`);
  const words = el('p', { class: 'hint', id: `${id}-hint`, text: hint });
  const error = el('p', { class: 'field-error', id: `${id}-error` });
  return {
    error,
    element: el('div', { class: 'field' }, el('label', { for: id, text: label }), control, words, error),
  };
}

/** A form whose submission is ignored while the one before is under way. */
export function formOf(title, parts, submit) {
  let isSending = false;
  const send = async (event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    await submit().finally(() => (isSending = false));
  };
  const props = { class: 'fields', novalidate: true, 'aria-label': title, on: { submit: send } };
  return el('form', props, ...parts);
}

export class Form {
  /**
   * `fields`: [name, label, control, hint]; `submit(controls)` → reply or undefined; `done(value, reply)` → texts and
   * elements; `emptied`: the field that is then ready for the next one; `place(messages)` moves messages between fields.
   */
  constructor({ title, button, fields, submit, done, emptied, place = (messages) => messages, buttons = [] }) {
    Object.assign(this, { controls: {}, errors: {}, submit, done, place, title });
    this.note = el('p', { class: 'note' });
    this.next = fields.find(([name]) => name === emptied)?.[2];
    forms.add(this);
    const parts = fields.map(([name, label, control, hint]) => {
      const { element, error } = field(label, control, hint);
      this.controls[name] = control;
      this.errors[name] = error;
      return element;
    });
    const actions = el('div', { class: 'actions' }, sendButton(button, undefined, { class: 'primary' }), ...buttons);
    this.element = formOf(title, [...parts, actions, this.note], () => this.#send());
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

  async #send() {
    const { next } = this;
    const sent = next?.value;
    const reply = await this.submit(this.controls);
    if (reply === undefined) return;
    this.mark(reply.ok ? {} : this.place(messagesByField(reply.message, Object.keys(this.controls))));
    if (!reply.ok) return;
    report(this.note, this.done(reply.value, reply));
    if (next === undefined || next.value !== sent) return; // the next one is typed already
    next.value = '';
    if (mayFocus(this.element)) next.focus();
  }

  mark(messages) {
    this.note.textContent = messages[''] ?? '';
    this.note.classList.toggle('bad', messages[''] !== undefined);
    for (const [name, control] of Object.entries(this.controls)) {
      this.errors[name].textContent = messages[name] ?? '';
      control.setAttribute('aria-invalid', String(messages[name] !== undefined));
    }
    const all = Object.entries(messages);
    if (all.length === 0) return;
    const labelOf = (name) => this.controls[name]?.labels[0].textContent ?? '';
    announce(`${this.title}: ${all.map(([name, text]) => `${labelOf(name)} ${text}`).join('; ')}`);
    const wrong = Object.keys(this.controls).find((name) => messages[name]);
    if (mayFocus(this.element)) this.controls[wrong]?.focus();
  }
}
