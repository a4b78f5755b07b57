/** Categories: names for the ids that animals refer to. */
import { button, nameIn } from './dom.js';
import { Form, idInput, textInput } from './form.js';
import { objectOf } from './json.js';
import { List } from './list.js';
import { categoryNames, idText, nameText, sameId } from './shop.js';
import { bus, call } from './wire.js';

const CATEGORIES = '/v1/categories';

const rename = (category) =>
  button('Rename', () => nameForm.open(category), {
    class: 'small',
    'aria-label': `Rename ${category.name}, category ${category.id}`,
  });

const categories = new List({
  view: 'categories',
  path: CATEGORIES,
  thing: 'category',
  things: 'categories',
  size: '100', // their names are shown with the animals, so that one page should do
  empty: 'No categories yet. Animals may refer to any number; a name makes it readable.',
  columns: [
    ['col-id', 'Id', ({ id }) => [idText(id)]],
    ['col-main', 'Name', ({ name }) => [nameText(name)]],
    ['col-actions', 'Actions', (category) => [rename(category)]],
  ],
  seen: (page) => {
    for (const { id, name } of page) categoryNames.set(String(id), name);
    bus.dispatchEvent(new Event('categories-named'));
  },
});

const nameForm = new Form({
  title: 'Name a category',
  button: 'Save',
  fields: [
    ['id', 'Id', idInput(), 'Any 64-bit integer'],
    ['name', 'Name', textInput(), '1 to 255 characters'],
  ],
  submit: ({ id, name }) =>
    call('PUT', `${CATEGORIES}/${encodeURIComponent(id.value.trim() || ' ')}`, {
      body: objectOf({ name: JSON.stringify(name.value) }),
    }),
  done: (category) => {
    const known = categories.shown().find(({ id }) => sameId(id, category.id));
    if (known !== undefined) known.name = category.name;
    else categories.append(category);
    categories.seen([category]);
    categories.drawRows();
    return [`Category ${category.id} is called `, nameIn(category.name), '.'];
  },
});

export const categoriesView = {
  title: 'Categories',
  list: categories,
  parts: [nameForm.drawer(), categories.element],
};
