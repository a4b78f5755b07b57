/** Categories: their list and their names, which stand beside the animals. */
import { type Child, el, nameIn } from './dom.ts';
import { Form, idInput, textInput } from './form.ts';
import { objectOf } from './json.ts';
import { List } from './list.ts';
import type { Category, Id } from './model.ts';
import { call, emit, hear, wire } from './wire.ts';

const CATEGORIES = '/v1/categories';

/** By id, as text. */
export type Names = Map<string, string>;
export const categoryNames: Names = new Map();

export function noteNames(names: Names, items: { id: Id; name: string }[]): void {
  for (const { id, name } of items) names.set(String(id), name);
}
export const idText = (id: Id) => el('span', { class: 'number', text: String(id) });
export const idLink = (view: string, id: Id) => el('a', { class: 'number', href: `#${view}/${id}`, text: String(id) });
export const nameText = (name: string) => el('span', { class: 'name', title: name, text: name });

export function named(names: Names, id: Id, shown: HTMLElement = idText(id)): Child[] {
  const name = names.get(String(id));
  return name === undefined ? [shown] : [nameText(name), ' ', shown];
}

function noteCategories(categories: Category[]): void {
  noteNames(categoryNames, categories);
  emit('categories');
}

let areNamesRead = false;

/** One page of them should do. They are read after a view was, and only if the key is accepted. */
export async function readCategoryNames(): Promise<void> {
  if (areNamesRead || wire.standing !== 'accepted' || wire.wait !== undefined) return;
  areNamesRead = true;
  const reply = await call<Category[]>('GET', `${CATEGORIES}?limit=100`);
  if (reply?.ok) noteCategories(reply.value);
}

const suggestions = el('datalist', { id: 'category-ids' });
document.body.append(suggestions);
hear(['categories'], () => {
  suggestions.replaceChildren(...[...categoryNames].map(([value, text]) => el('option', { value, text })));
});

/** The category of an animal: its id, for which the names that are known are offered. */
export const categoryField = () =>
  ({
    name: 'categoryId',
    label: 'Category',
    control: idInput({ list: suggestions.id }),
    hint: 'Its id: any 64-bit integer',
    needed: 'Enter the id of a category.',
  }) as const;

const categories = new List<Category>({
  view: 'categories',
  path: CATEGORIES,
  thing: 'category',
  things: 'categories',
  empty: 'No categories yet. Animals may refer to any number; a name makes it readable.',
  columns: [
    ['col-id', 'Id', ({ id }) => idText(id)],
    ['col-main', 'Name', ({ name }) => nameText(name)],
  ],
  seen: noteCategories,
});

const categoryForm = new Form({
  title: 'Name a category',
  button: 'Save',
  fields: [
    { name: 'id', label: 'Id', control: idInput(), hint: 'Any 64-bit integer', needed: 'Enter an id.' },
    { name: 'name', label: 'Name', control: textInput(), hint: '1 to 255 characters', needed: 'Enter a name.' },
  ],
  submit: ({ id, name }) => {
    const path = `${CATEGORIES}/${encodeURIComponent(id.value.trim() || ' ')}`;
    return call<Category>('PUT', path, { body: objectOf({ name: JSON.stringify(name.value) }) });
  },
  done: (category) => {
    noteCategories([category]);
    void categories.load();
    return [`Category ${category.id} is called `, nameIn(category.name), '.'];
  },
});

export const categoriesView = {
  title: 'Categories',
  list: categories,
  parts: [categoryForm.drawer(), categories.element],
  clear: () => {
    areNamesRead = false;
    categoryNames.clear();
    categories.clear();
    emit('categories');
  },
};
