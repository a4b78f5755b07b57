/** Categories: their list and their names, which stand beside the animals. */
import { button, el, nameIn } from './dom.js';
import { Form, idInput, optionsOf, textInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { List } from './list.js';
import { bus, call, emit } from './wire.js';

const CATEGORIES = '/v1/categories';
/** A longer name may be cut in a list. */
const MAX_SHORT_NAME = 60;
const OTHER = 'other';

/** By id, as text. */
export const categoryNames = new Map();

export const noteNames = (names, items) => items.forEach(({ id, name }) => void names.set(String(id), name));
export const idText = (id) => el('span', { class: 'number', text: String(id) });
export const idLink = (view, id) => el('a', { class: 'number', href: `#${view}/${id}`, text: String(id) });
export const nameText = (name) =>
  el('span', { class: 'name', title: name.length > MAX_SHORT_NAME ? name : undefined, text: name });

export function named(names, id, shown = idText(id)) {
  const name = names.get(String(id));
  return name === undefined ? [shown] : [nameText(name), ' ', shown];
}

/** The category of an animal as two fields of a form: a list of the names that are known, and an id where none fits. */
export class CategoryFields {
  constructor() {
    const choose = () => this.#showOther();
    this.list = el('select', { on: { change: choose } });
    this.other = idInput();
    this.fields = [
      ['categoryId', 'Category', this.list],
      [OTHER, 'Category id', this.other, 'Any 64-bit integer'],
    ];
    bus.addEventListener('categories', () => this.#draw());
    this.#draw();
  }

  /** As JSON; undefined if none was chosen. */
  get json() {
    const text = this.list.value === OTHER ? this.other.value : this.list.value;
    return text.trim() === '' ? undefined : asTyped(text);
  }

  /** Puts the message about the category at the field that is in use. */
  place({ categoryId: text, ...others }) {
    if (text === undefined) return others;
    if (this.list.value === OTHER) return { ...others, [OTHER]: text };
    return { ...others, categoryId: this.list.value === '' ? 'Choose a category.' : text };
  }

  set(id) {
    const isKnown = categoryNames.has(String(id));
    this.list.value = isKnown ? String(id) : OTHER;
    this.other.value = isKnown ? '' : String(id);
    this.#showOther();
  }

  #draw() {
    const { value } = this.list;
    const known = [...categoryNames].map(([id, name]) => [id, `${name} (${id})`]);
    const all = known.length === 0 ? [[OTHER, 'by its id']] : [['', 'choose …'], ...known, [OTHER, 'other …']];
    this.list.replaceChildren(...optionsOf(all));
    if (value === OTHER && this.other.value.trim() !== '') this.set(this.other.value.trim());
    else if (known.some(([id]) => id === value)) this.list.value = value;
    queueMicrotask(() => this.#showOther()); // when both are in their form
  }

  #showOther() {
    const box = this.other.closest('.field');
    if (box) box.hidden = this.list.value !== OTHER;
  }
}

const rename = (category) => {
  const label = `Rename ${category.name}, category ${category.id}`;
  return button('Rename', () => categoryForm.open(category), { class: 'small', 'aria-label': label });
};

const categories = new List({
  view: 'categories',
  path: CATEGORIES,
  thing: 'category',
  things: 'categories',
  size: '100', // their names are shown with the animals, so that one page should do
  empty: 'No categories yet. Animals may refer to any number; a name makes it readable.',
  columns: [
    ['col-id', 'Id', ({ id }) => idText(id)],
    ['col-main', 'Name', ({ name }) => nameText(name)],
    ['col-actions', 'Actions', rename],
  ],
  seen: (page) => {
    noteNames(categoryNames, page);
    emit('categories');
  },
});

const categoryForm = new Form({
  title: 'Name a category',
  button: 'Save',
  fields: [
    ['id', 'Id', idInput(), 'Any 64-bit integer'],
    ['name', 'Name', textInput(), '1 to 255 characters'],
  ],
  submit: ({ id, name }) => {
    const path = `${CATEGORIES}/${encodeURIComponent(id.value.trim() || ' ')}`;
    return call('PUT', path, { body: objectOf({ name: JSON.stringify(name.value) }) });
  },
  done: ({ id, name }) => {
    categories.append({ id, name });
    categories.change(id, { name });
    categories.seen([{ id, name }]);
    return [`Category ${id} is called `, nameIn(name), '.'];
  },
});

export const categoriesView = {
  title: 'Categories',
  list: categories,
  parts: [categoryForm.drawer(), categories.element],
  clear: () => {
    categoryNames.clear();
    categories.clear();
    emit('categories');
  },
};
