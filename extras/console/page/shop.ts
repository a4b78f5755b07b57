/** Animals and orders. What is read in one view is shown in the other. */
import { CategoryFields, categoryNames, idLink, idText, named, nameText, noteNames } from './categories.ts';
import { badge, type Child, type Content, confirmButton, el, nameIn, report, sendButton } from './dom.ts';
import { Form, idInput, select, textInput } from './form.ts';
import { asTyped, objectOf } from './json.ts';
import { List } from './list.ts';
import type { Id, Order, OrderStatus, Pet, PetStatus } from './model.ts';
import { call, hear, postOnce, type Reply } from './wire.ts';

const PETS = '/v1/pets';
const ORDERS = '/v1/store/orders';
const PET_STATUSES: PetStatus[] = ['available', 'pending', 'sold'];
const ORDER_STATUSES: OrderStatus[] = ['placed', 'delivered', 'cancelled'];
type Ending = Exclude<OrderStatus, 'placed'>;
/** What becomes of the animal when its order ends so. */
const OUTCOME: Record<Ending, PetStatus> = { delivered: 'sold', cancelled: 'available' };
const ORDERS_VIEW = '#orders?status=placed';
const SMALL = { class: 'small' };

/** Names of animals by id, as text: as far as they were seen. */
const petNames = new Map<string, string>();
/** Ids of animals, as text, that were removed. */
const removedPets = new Set<string>();
/** By animal, as text: the id of its open order, where an order was placed or listed. An animal does not name it. */
const openOrders = new Map<string, Id>();

// Orders

/** `petId` as it was typed. */
async function placeOrder(petId: string) {
  const reply = await postOnce<Order>(ORDERS, objectOf({ petId: asTyped(petId) }));
  if (reply?.ok) {
    noteOrder(reply.value);
    orders.append(reply.value);
  }
  return reply;
}

function noteOrder({ id, petId, status }: Order): void {
  const open = openOrders.get(String(petId));
  if (status === 'placed') openOrders.set(String(petId), id);
  else if (String(open) === String(id)) openOrders.delete(String(petId));
}

async function closeOrder(id: Id, status: Ending): Promise<Reply<Order> | undefined> {
  const body = objectOf({ status: JSON.stringify(status) });
  const reply = await call<Order>('PATCH', `${ORDERS}/${id}`, { body });
  if (reply?.ok) await showClosed(reply.value, reply.text, OUTCOME[status]);
  if (reply?.status !== 409) return reply;
  const now = await call<Order>('GET', `${ORDERS}/${id}`); // another client was quicker
  if (now?.ok) await showClosed(now.value, now.text);
  return reply;
}

/** `petStatus`: undefined if it does not follow from the order, since the animal may have been ordered again. */
async function showClosed(order: Order, text: string, petStatus?: PetStatus): Promise<void> {
  noteOrder(order);
  orders.change(order.id, { status: order.status }, text);
  if (petStatus) animals.change(order.petId, { status: petStatus });
  else await reread(order.petId);
}

/** The buttons that close an order. `whose`: the order in words, for screen readers; `tell` shows the result. */
function closers(orderId: Id, whose: string, tell: (text: string, isBad?: boolean) => void) {
  const closer = (text: string, status: Ending) => {
    const act = async () => {
      const reply = await closeOrder(orderId, status);
      if (reply?.ok) tell(`Order ${orderId} is ${status}; animal ${reply.value.petId} is ${OUTCOME[status]}.`);
      else if (reply !== undefined) tell(reply.message, true);
    };
    return confirmButton(text, `${text} ${whose}`, 'No', [[`Yes, ${text.toLowerCase()}`, act]], SMALL);
  };
  return [closer('Deliver', 'delivered'), closer('Cancel', 'cancelled')];
}

const petOf = ({ petId }: Order) =>
  removedPets.has(String(petId)) ? [idText(petId), ', removed'] : named(petNames, petId, idLink('animals', petId));

function when({ placedAt }: Order) {
  const text = new Date(placedAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return el('time', { datetime: placedAt, title: placedAt, text });
}

const closersOf = ({ id, status }: Order) =>
  status === 'placed' ? closers(id, `order ${id}`, (text, isBad) => orders.report(id, text, isBad)) : [];

const orders = new List<Order>({
  view: 'orders',
  path: ORDERS,
  onePath: (id) => `${ORDERS}/${encodeURIComponent(id)}`,
  thing: 'order',
  things: 'orders',
  statuses: ORDER_STATUSES,
  empty: 'No orders yet. Place one above, or from the row of an animal.',
  columns: [
    ['col-id', 'Id', ({ id }) => idLink('orders', id)],
    ['col-main', 'Animal', petOf],
    ['col-more', 'Placed', when],
    ['col-status', 'Status', ({ status }) => badge(status)],
    ['col-actions', 'Actions', closersOf],
  ],
  seen: (page) => page.forEach(noteOrder),
});

const PET_ID = 'The id of an available animal';
const placeForm = new Form({
  title: 'Place an order',
  button: 'Place',
  fields: [{ name: 'petId', label: 'Animal', control: idInput(), hint: PET_ID, needed: 'Enter an id.' }],
  submit: ({ petId }) => placeOrder(petId.value),
  done: ({ id, petId }) => {
    animals.change(petId, { status: 'pending' });
    return `Order ${id} was placed for animal ${petId}.`;
  },
  emptied: 'petId',
});

// Animals

async function orderRow({ id }: Pet): Promise<void> {
  const reply = await placeOrder(String(id));
  if (reply === undefined) return;
  if (reply.ok) animals.change(id, { status: 'pending' });
  else if (reply.status === 409) await reread(id);
  animals.report(id, reply.ok ? `Order ${reply.value.id} was placed.` : reply.message, !reply.ok);
}

/** For a row that is out of date, since another client was quicker. */
async function reread(id: Id): Promise<void> {
  if (!animals.has(id)) return;
  const reply = await call<Pet[]>('GET', onePath(String(id)));
  for (const one of reply?.ok ? reply.value : []) animals.change(one.id, { status: one.status });
}

function ordering(pet: Pet): Content {
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

function editLink({ id, name }: Pet) {
  const label = `Edit ${name}, animal ${id}`;
  return el('a', { class: 'edit', href: `#animals/${id}`, 'aria-label': label, text: 'Edit' });
}

/** Orders are confirmed in a box of their own, so that the link beside it stays. */
const actions = (pet: Pet): Child[] => [
  el('span', {}, ...[ordering(pet)].flat()),
  animals.one === undefined ? editLink(pet) : '', // the form is below
];

/** An id beyond int64 is sent as well: the service is to judge it. GET /v1/pets/{petId} is deprecated. */
const onePath = (id: string) =>
  `${PETS}?limit=1&after=${encodeURIComponent(/^\d+$/.test(id) ? String(BigInt(id) - 1n) : id)}`;

const nameField = () =>
  ({
    name: 'name',
    label: 'Name',
    control: textInput(),
    hint: '1 to 255 characters',
    needed: 'Enter a name.',
  }) as const;
const newCategory = new CategoryFields();
const statusSelect = select([['', 'left out'], ...PET_STATUSES]);

const addForm = new Form({
  title: 'Add an animal',
  button: 'Add',
  fields: [
    nameField(),
    ...newCategory.fields,
    { name: 'status', label: 'Status', control: statusSelect, hint: 'Left out, it is available' },
  ],
  submit: ({ name, status }) => {
    const members = {
      name: JSON.stringify(name.value),
      categoryId: newCategory.json,
      status: status.value === '' ? undefined : JSON.stringify(status.value),
    };
    return postOnce<Pet>(PETS, objectOf(members));
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

const editedCategory = new CategoryFields();
const editedPath = (): string => `${PETS}/${animals.one}`;

/** Why it could not be changed: at the form, unless another page is shown by now. */
function tellRefusal(id: string, message: string): void {
  if (animals.one === id) report(editForm.note, message, true);
  else animals.report(id, `Animal ${id}: ${message}`, true);
}

async function removeEdited(): Promise<void> {
  const { one: id = '' } = animals;
  editForm.mark({});
  const reply = await call<undefined>('DELETE', editedPath());
  if (reply === undefined) return;
  if (!reply.ok) return tellRefusal(id, reply.message);
  removedPets.add(id);
  animals.remove(id, `Animal ${id}, ${petNames.get(id)}, was removed.`);
}

const removing = el('span', {}, confirmButton('Remove …', 'Remove this animal', 'No', [['Yes, remove', removeEdited]]));

const editForm = new Form({
  title: 'Edit this animal',
  button: 'Save',
  fields: [nameField(), ...editedCategory.fields],
  submit: async ({ name }) => {
    const { one: id = '' } = animals;
    const body = objectOf({ name: JSON.stringify(name.value), categoryId: editedCategory.json });
    const reply = await call<Pet>('PATCH', editedPath(), { body });
    if (animals.one === id || reply === undefined || reply.ok) return reply;
    tellRefusal(id, reply.message);
    return undefined;
  },
  place: (messages) => editedCategory.place(messages),
  done: (pet, { text }) => {
    noteNames(petNames, [pet]);
    animals.change(pet.id, pet, text);
    return `Animal ${pet.id} is saved.`;
  },
  buttons: [removing],
});

const animals: List<Pet> = new List({
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
    element: el('div', { class: 'detail' }, el('h3', { text: 'Edit this animal' }), editForm.element),
    fill: (pet) => {
      editForm.mark({});
      editForm.controls.name.value = pet.name;
      editedCategory.set(pet.categoryId);
    },
  },
});

hear(['categories'], () => animals.drawRows());

function clearShop(): void {
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
