/** Forms that judge nothing: what is typed goes out as it is, what the service says of it stands at the fields. */
import { announce, badge, el, sendButton } from './dom.js';

const FIELD = '[A-Za-z]+';

/** `name: is missing (…); categoryId: must be …` by field; what names no field of the form comes under ''. */
export function messagesByField(message, fields) {
  const found = new Map();
  for (const part of message.split(new RegExp(`; (?=${FIELD}: )`))) {
    const [, name, rest] = new RegExp(`^(${FIELD}): (.*)$`, 's').exec(part) ?? [];
    const field = fields.includes(name) ? name : '';
    const text = field === '' ? part : rest;
    found.set(field, found.has(field) ? `${found.get(field)}; ${text}` : text);
  }
  return found;
}

let forms = 0;

export class Form {
  /** `fields`: [name, label, control, hint]; `submit(controls)` → reply or undefined; `done(value)` → a note. */
  constructor({ title, button, fields, submit, done }) {
    const number = ++forms;
    Object.assign(this, { controls: {}, errors: {}, submit, done, title });
    this.note = el('p', { class: 'form-note', role: 'status' });
    const parts = fields.map(([name, label, control, hint]) =>
      this.#field(`f${number}-${name}`, name, label, control, hint),
    );
    const form = el(
      'form',
      { class: 'fields', novalidate: true, 'aria-label': title, on: { submit: (event) => this.#send(event) } },
      ...parts,
      el('div', { class: 'actions' }, sendButton(button, undefined, { class: 'primary' })),
    );
    this.element = el('details', { class: 'drawer' }, el('summary', { text: title }), form, this.note);
  }

  #field(id, name, label, control, hint) {
    control.id = id;
    control.setAttribute('aria-describedby', `${id}-hint ${id}-error`);
    control.setAttribute('autocomplete', 'off');
    this.controls[name] = control;
    this.errors[name] = el('p', { class: 'field-error', id: `${id}-error` });
    return el(
      'div',
      { class: 'field' },
      el('label', { for: id, text: label }),
      control,
      el('p', { class: 'hint', id: `${id}-hint`, text: hint ?? '' }),
      this.errors[name],
    );
  }

  /** Opens the form, with these values in it. */
  open(values = {}) {
    this.element.open = true;
    for (const [name, value] of Object.entries(values)) this.controls[name].value = value;
    Object.values(this.controls).at(-1).focus();
  }

  async #send(event) {
    event.preventDefault();
    if (this.sending) return;
    this.sending = true;
    const reply = await this.submit(this.controls);
    this.sending = false;
    if (reply === undefined) return;
    this.#mark(reply.ok ? new Map() : messagesByField(reply.message, Object.keys(this.controls)));
    if (!reply.ok) return;
    this.note.replaceChildren(badge(String(reply.status), 'good'), ' ', ...this.done(reply.value, reply));
  }

  #mark(messages) {
    this.note.textContent = messages.get('') ?? '';
    this.note.classList.toggle('bad', messages.has(''));
    for (const [name, control] of Object.entries(this.controls)) {
      this.errors[name].textContent = messages.get(name) ?? '';
      control.setAttribute('aria-invalid', String(messages.has(name)));
    }
    const wrong = Object.keys(this.controls).filter((name) => messages.has(name));
    if (wrong.length > 0) {
      announce(`${this.title}: ${[...messages].map(([name, text]) => `${name} ${text}`).join('; ')}`);
      this.controls[wrong[0]].focus();
    }
  }
}
