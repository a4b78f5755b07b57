/** Animals: the table, an order from a row, and a new one. */
import { badge, el, nameIn, once, sendButton } from './dom.js';
import { Form, idInput, select, textInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { List } from './list.js';
import { closers, findOrder, placeOrder } from './orders.js';
import { categoryNames, idLink, named, nameText, openOrders, petNames, sameId } from './shop.js';
import { bus, call, postOnce } from './wire.js';

const PET_STATUSES = ['available', 'pending', 'sold'];
const SUGGESTIONS = 'category-suggestions';

async function orderRow(pet) {
  const reply = await placeOrder(String(pet.id));
  if (reply === undefined) return;
  if (!reply.ok) {
    if (reply.status === 409) await readAnew(pet.id);
    return animals.say(pet.id, reply.message, true);
  }
  movePet(pet.id, 'pending');
  animals.say(pet.id, `Order ${reply.value.id} was placed.`);
}

/** For a row that shows what is no longer so, since somebody was quicker. */
async function readAnew(id) {
  if (!animals.shown().some((one) => sameId(one.id, id))) return;
  const reply = await call('GET', onePath(id), { again: true });
  for (const one of reply?.ok ? reply.value : []) if (sameId(one.id, id)) movePet(id, one.status);
}

async function findRow(pet) {
  const refused = await findOrder(pet.id);
  if (refused !== undefined && !refused.ok) return animals.say(pet.id, refused.message, true);
  animals.refresh(pet.id);
}

function actions(pet) {
  const action = (text, act, label) =>
    sendButton(text, once(act), { class: 'small', 'aria-label': `${label} ${pet.name}, animal ${pet.id}` });
  if (pet.status === 'available') return [action('Order', () => orderRow(pet), 'Order')];
  if (pet.status === 'sold') return [];
  const order = openOrders.get(String(pet.id));
  if (order === null) return [el('span', { class: 'hint', text: 'no open order' })];
  if (order !== undefined)
    return closers(order, `order ${order} for ${pet.name}`, (text, bad) => animals.say(pet.id, text, bad));
  return [action('Find its order', () => findRow(pet), 'Find its order:')];
}

/** An id beyond int64 is asked for as well: the service is to judge it. */
const before = (id) => (/^\d+$/.test(id) ? BigInt(id) - 1n : id);
const onePath = (id) => `/v1/pets?limit=1&after=${encodeURIComponent(before(id))}`; // GET /v1/pets/{petId} is deprecated

const animals = new List({
  view: 'animals',
  path: '/v1/pets',
  onePath,
  thing: 'animal',
  things: 'animals',
  statuses: PET_STATUSES,
  empty: 'No animals yet. Add the first one above.',
  columns: [
    ['col-id', 'Id', ({ id }) => [idLink('animals', id)]],
    ['col-main', 'Name', ({ name }) => [nameText(name)]],
    ['col-more', 'Category', ({ categoryId }) => named(categoryNames, categoryId)],
    ['col-status', 'Status', ({ status }) => [badge(status)]],
    ['col-actions', 'Actions', actions],
  ],
  seen: (pets) => {
    for (const { id, name } of pets) petNames.set(String(id), name);
  },
});

function movePet(id, status) {
  for (const pet of animals.shown()) if (sameId(pet.id, id)) pet.status = status;
  animals.refresh(id);
}

const suggestions = el('datalist', { id: SUGGESTIONS });

const addForm = new Form({
  title: 'Add an animal',
  button: 'Add',
  fields: [
    ['name', 'Name', textInput(), '1 to 255 characters'],
    ['categoryId', 'Category', idInput({ list: SUGGESTIONS }), 'Its id: any 64-bit integer'],
    ['status', 'Status', select([['', 'left out'], ...PET_STATUSES]), 'Left out, it is available'],
  ],
  submit: ({ name, categoryId, status }) => {
    const members = {
      name: JSON.stringify(name.value),
      categoryId: categoryId.value === '' ? undefined : asTyped(categoryId.value),
      status: status.value === '' ? undefined : JSON.stringify(status.value),
    };
    return postOnce('/v1/pets', objectOf(members));
  },
  done: (pet, { isAgain }) => {
    petNames.set(String(pet.id), pet.name);
    const isShown = animals.append(pet);
    const by = isAgain ? ', by the request before' : '';
    const text = [nameIn(pet.name), ` was added as animal ${pet.id}${by}.`];
    return isShown ? text : [...text, ' ', el('a', { href: `#animals/${pet.id}`, text: 'Show it' })];
  },
  emptied: 'name',
});

bus.addEventListener('pet-moved', ({ detail: { petId, status } }) =>
  status ? movePet(petId, status) : readAnew(petId),
);
bus.addEventListener('categories-named', () => {
  suggestions.replaceChildren(...[...categoryNames].map(([value, label]) => el('option', { value, label })));
  animals.drawRows();
});

export const animalsView = {
  title: 'Animals',
  list: animals,
  parts: [suggestions, addForm.drawer(), animals.element],
};
