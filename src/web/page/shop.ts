/** Animals and orders. What is read in one view is shown in the other. */
import { CategoryFields, categoryNames, idLink, idText, named, nameText, noteNames } from './categories.js';
import { badge, confirmButton, el, nameIn, report, sendButton } from './dom.js';
import { Form, idInput, select, textInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { List } from './list.js';
import { bus, call, postOnce } from './wire.js';

const PETS = '/v1/pets';
const ORDERS = '/v1/store/orders';
const PET_STATUSES = ['available', 'pending', 'sold'];
/** What becomes of the animal when its order ends so. */
const OUTCOME = { delivered: 'sold', cancelled: 'available' };
const MAX_NAME_REQUESTS = 3;
const MAX_PAGE = 100n;
const ORDERS_VIEW = '#orders?status=placed';
const SMALL = { class: 'small' };

/** Names of animals by id, as text. */
const petNames = new Map();
/** Ids of animals, as text, that are in orders and no longer there. */
const removedPets = new Set();
/** By animal, as text: the id of its open order, where an order was placed or listed. An animal does not name it. */
const openOrders = new Map();

// Orders

/** `petId` as it was typed. */
async function placeOrder(petId) {
  const reply = await postOnce(ORDERS, objectOf({ petId: petId === '' ? undefined : asTyped(petId) }));
  if (reply?.ok) {
    noteOrder(reply.value);
    if (orders.append(reply.value)) nameAnimals([reply.value]);
  }
  return reply;
}

function noteOrder({ id, petId, status }) {
  const open = openOrders.get(String(petId));
  if (status === 'placed') openOrders.set(String(petId), id);
  else if (String(open) === String(id)) openOrders.delete(String(petId));
}

async function closeOrder(id, status) {
  const reply = await call('PATCH', `${ORDERS}/${id}`, { body: objectOf({ status: JSON.stringify(status) }) });
  if (reply?.ok) await showClosed(reply, OUTCOME[status]);
  if (reply?.status !== 409) return reply;
  const now = await call('GET', `${ORDERS}/${id}`); // another client was quicker
  if (now?.ok) await showClosed(now);
  return reply;
}

/** `petStatus`: undefined if it does not follow from the order, since the animal may have been ordered again. */
async function showClosed({ value: order, text }, petStatus) {
  noteOrder(order);
  orders.change(order.id, { status: order.status }, text);
  if (petStatus) animals.change(order.petId, { status: petStatus });
  else await reread(order.petId);
}

/** The buttons that close an order. `whose`: the order in words, for screen readers; `report(text, isBad)` the result. */
function closers(orderId, whose, report) {
  const closer = (text, status) => {
    const act = async () => {
      const reply = await closeOrder(orderId, status);
      if (reply?.ok) report(`Order ${orderId} is ${status}; animal ${reply.value.petId} is ${OUTCOME[status]}.`);
      else if (reply !== undefined) report(reply.message, true);
    };
    return confirmButton(text, `${text} ${whose}`, 'No', [[`Yes, ${text.toLowerCase()}`, act]], SMALL);
  };
  return [closer('Deliver', 'delivered'), closer('Cancel', 'cancelled')];
}

/** Reads the names of the animals in a page of orders, which lack them, as far as a few requests give them. */
async function nameAnimals(page) {
  const ids = new Set(page.map(({ petId }) => String(petId)).filter((id) => !petNames.has(id) && !removedPets.has(id)));
  const unknown = [...ids].map(BigInt).sort((a, b) => (a < b ? -1 : 1));
  for (let requests = 0; unknown.length > 0 && requests < MAX_NAME_REQUESTS; requests++) {
    const [first] = unknown;
    const near = unknown.filter((id) => id < first + MAX_PAGE);
    const limit = near.at(-1) - first + 1n;
    const reply = await call('GET', `${PETS}?limit=${limit}&after=${first - 1n}`);
    if (!reply?.ok) return;
    noteNames(petNames, reply.value);
    for (const id of near) if (!petNames.has(String(id))) removedPets.add(String(id));
    unknown.splice(0, near.length);
  }
  if (ids.size > 0) orders.drawRows();
}

const petOf = ({ petId }) =>
  removedPets.has(String(petId)) ? [idText(petId), ', removed'] : named(petNames, petId, idLink('animals', petId));

function when({ placedAt }) {
  const text = new Date(placedAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return el('time', { datetime: placedAt, title: placedAt, text });
}

const orders = new List({
  view: 'orders',
  path: ORDERS,
  onePath: (id) => `${ORDERS}/${encodeURIComponent(id)}`,
  thing: 'order',
  things: 'orders',
  statuses: ['placed', 'delivered', 'cancelled'],
  empty: 'No orders yet. Place one above, or from the row of an animal.',
  columns: [
    ['col-id', 'Id', ({ id }) => idLink('orders', id)],
    ['col-main', 'Animal', petOf],
    ['col-more', 'Placed', when],
    ['col-status', 'Status', ({ status }) => badge(status)],
    ['col-actions', 'Actions', ({ id, status }) =>
      status === 'placed' ? closers(id, `order ${id}`, (text, isBad) => orders.report(id, text, isBad)) : []],
  ],
  seen: (page) => {
    page.forEach(noteOrder);
    nameAnimals(page);
  },
}); // biome-ignore format: a table

const placeForm = new Form({
  title: 'Place an order',
  button: 'Place',
  fields: [['petId', 'Animal', idInput(), 'The id of an available animal']],
  submit: ({ petId }) => placeOrder(petId.value),
  done: ({ id, petId }) => {
    animals.change(petId, { status: 'pending' });
    return `Order ${id} was placed for animal ${petId}.`;
  },
  emptied: 'petId',
});

// Animals

async function orderRow({ id }) {
  const reply = await placeOrder(String(id));
  if (reply === undefined) return;
  if (reply.ok) animals.change(id, { status: 'pending' });
  else if (reply.status === 409) await reread(id);
  animals.report(id, reply.ok ? `Order ${reply.value.id} was placed.` : reply.message, !reply.ok);
}

/** For a row that is out of date, since another client was quicker. */
async function reread(id) {
  if (!animals.has(id)) return;
  const reply = await call('GET', onePath(id));
  for (const one of reply?.ok ? reply.value : []) animals.change(one.id, { status: one.status });
}

function ordering(pet) {
  const label = `${pet.name}, animal ${pet.id}`;
  if (pet.status === 'available') {
    return sendButton('Order', () => orderRow(pet), { ...SMALL, 'aria-label': `Order ${label}` });
  }
  if (pet.status === 'sold') return '';
  const order = openOrders.get(String(pet.id));
  if (order === undefined)
    return el('a', { href: ORDERS_VIEW, 'aria-label': `Find its order: ${label}`, text: 'Find its order' });
  return closers(order, `order ${order} for ${pet.name}`, (text, isBad) => animals.report(pet.id, text, isBad));
}

function editLink({ id, name }) {
  const label = `Edit ${name}, animal ${id}`;
  return el('a', { class: 'edit', href: `#animals/${id}`, 'aria-label': label, text: 'Edit' });
}

/** Orders are confirmed in a box of their own, so that the link beside it stays. */
const actions = (pet) => [
  el('span', {}, ...[ordering(pet)].flat()),
  animals.one === undefined ? editLink(pet) : '', // the form is below
];

/** An id beyond int64 is sent as well: the service is to judge it. GET /v1/pets/{petId} is deprecated. */
const onePath = (id) => `${PETS}?limit=1&after=${encodeURIComponent(/^\d+$/.test(id) ? BigInt(id) - 1n : id)}`;

const newCategory = new CategoryFields();

const addForm = new Form({
  title: 'Add an animal',
  button: 'Add',
  fields: [
    ['name', 'Name', textInput(), '1 to 255 characters'],
    ...newCategory.fields,
    ['status', 'Status', select([['', 'left out'], ...PET_STATUSES]), 'Left out, it is available'],
  ],
  submit: ({ name, status }) => {
    const members = {
      name: JSON.stringify(name.value),
      categoryId: newCategory.json,
      status: status.value === '' ? undefined : JSON.stringify(status.value),
    };
    return postOnce(PETS, objectOf(members));
  },
  place: (messages) => newCategory.place(messages),
  done: (pet, { isReplay }) => {
    noteNames(petNames, [pet]);
    const isShown = animals.append(pet);
    const text = [nameIn(pet.name), ` was added as animal ${pet.id}${isReplay ? ', by the request before' : ''}.`];
    return isShown ? text : [...text, ' ', el('a', { href: `#animals/${pet.id}`, text: 'Show it' })];
  },
  emptied: 'name',
});

/** The animal that is edited, as it was read. */
let edited;
const editedCategory = new CategoryFields();
const editedPath = () => `${PETS}/${edited.id}`;

async function removeEdited() {
  const { id, name } = edited;
  editForm.mark({});
  const reply = await call('DELETE', editedPath());
  if (reply === undefined) return;
  if (!reply.ok) return report(editForm.note, reply.message, true);
  petNames.delete(String(id));
  removedPets.add(String(id));
  animals.remove(id, `Animal ${id}, ${name}, was removed.`);
}

const removing = el('span', {}, confirmButton('Remove …', 'Remove this animal', 'No', [['Yes, remove', removeEdited]]));

const editForm = new Form({
  title: 'Edit this animal',
  button: 'Save',
  fields: [['name', 'Name', textInput(), '1 to 255 characters'], ...editedCategory.fields], // biome-ignore format: short
  submit: ({ name }) => {
    const body = objectOf({ name: JSON.stringify(name.value), categoryId: editedCategory.json });
    return call('PATCH', editedPath(), { body });
  },
  place: (messages) => editedCategory.place(messages),
  done: (pet, { text }) => {
    edited = pet;
    noteNames(petNames, [pet]);
    animals.change(pet.id, pet, text);
    return 'Saved.';
  },
  buttons: [removing],
});

const animals = new List({
  view: 'animals',
  path: PETS,
  onePath,
  thing: 'animal',
  things: 'animals',
  statuses: PET_STATUSES,
  empty: 'No animals yet. Add the first one above.',
  columns: [
    ['col-id', 'Id', ({ id }) => idLink('animals', id)],
    ['col-main', 'Name', ({ name }) => nameText(name)],
    ['col-more', 'Category', ({ categoryId }) => named(categoryNames, categoryId)],
    ['col-status', 'Status', ({ status }) => badge(status)],
    ['col-actions', 'Actions', actions],
  ],
  seen: (page) => noteNames(petNames, page),
  detail: {
    element: el('div', { class: 'detail' }, el('h3', { text: editForm.title }), editForm.element),
    fill: (pet) => {
      edited = pet;
      editForm.mark({});
      editForm.controls.name.value = pet.name;
      editedCategory.set(pet.categoryId);
    },
  },
});

bus.addEventListener('categories', () => animals.drawRows());

function clearShop() {
  petNames.clear();
  removedPets.clear();
  openOrders.clear();
  animals.clear();
  orders.clear();
}

export const animalsView = {
  title: 'Animals',
  list: animals,
  parts: [addForm.drawer(), animals.element],
  clear: clearShop,
};
export const ordersView = {
  title: 'Orders',
  list: orders,
  parts: [placeForm.drawer(), orders.element],
  clear: () => {},
};
