/** Animals and orders. */
import { categoryField, categoryNames, idLink, named, nameText, noteNames } from './categories.ts';
import { badge, type Content, confirmButton, el, nameIn, report, sendButton } from './dom.ts';
import { type Control, Form, idInput, textInput } from './form.ts';
import { asTyped, objectOf } from './json.ts';
import { List } from './list.ts';
import type { Id, Order, OrderStatus, Pet, PetStatus } from './model.ts';
import { call, hear, postOnce } from './wire.ts';

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

// Orders

/** `petId` as it was typed. */
const placeOrder = (petId: string) => postOnce<Order>(ORDERS, objectOf({ petId: asTyped(petId) }));

async function closeOrder(id: Id, status: Ending): Promise<void> {
  const body = objectOf({ status: JSON.stringify(status) });
  const reply = await call<Order>('PATCH', `${ORDERS}/${id}`, { body });
  if (reply === undefined) return;
  if (reply.ok) orders.change(id, { status }, reply.text);
  else if (reply.status === 409) await orders.load(); // another client was quicker
  const done = (petId: Id) => `Order ${id} is ${status}; animal ${petId} is ${OUTCOME[status]}.`;
  orders.report(id, reply.ok ? done(reply.value.petId) : reply.message, !reply.ok);
}

function closers({ id, status }: Order): Content {
  const closer = (text: string, ending: Ending) =>
    sendButton(text, () => closeOrder(id, ending), { ...SMALL, 'aria-label': `${text} order ${id}` });
  return status === 'placed' ? [closer('Deliver', 'delivered'), closer('Cancel', 'cancelled')] : [];
}

function when({ placedAt }: Order) {
  const text = new Date(placedAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return el('time', { datetime: placedAt, title: placedAt, text });
}

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
    ['col-main', 'Animal', ({ petId }) => named(petNames, petId, idLink('animals', petId))],
    ['col-more', 'Placed', when],
    ['col-status', 'Status', ({ status }) => badge(status)],
    ['col-actions', 'Actions', closers],
  ],
});

const PET_ID = 'The id of an available animal';
const placeForm = new Form({
  title: 'Place an order',
  button: 'Place',
  fields: [{ name: 'petId', label: 'Animal', control: idInput(), hint: PET_ID, needed: 'Enter an id.' }],
  submit: ({ petId }) => placeOrder(petId.value),
  done: (order) => {
    void orders.load();
    return `Order ${order.id} was placed for animal ${order.petId}.`;
  },
  emptied: 'petId',
});

// Animals

async function orderRow({ id }: Pet): Promise<void> {
  const reply = await placeOrder(String(id));
  if (reply === undefined) return;
  if (reply.ok) animals.change(id, { status: 'pending' });
  else if (reply.status === 409) await animals.load(); // another client was quicker
  animals.report(id, reply.ok ? `Order ${reply.value.id} was placed.` : reply.message, !reply.ok);
}

function actions(pet: Pet): Content {
  const { id, name, status } = pet;
  const label = `${name}, animal ${id}`;
  const linkTo = (href: string, text: string) =>
    el('a', { class: 'edit', href, 'aria-label': `${text}: ${label}`, text });
  const order = {
    available: [sendButton('Order', () => orderRow(pet), { ...SMALL, 'aria-label': `Order ${label}` })],
    pending: [linkTo(ORDERS_VIEW, 'Its order')],
    sold: [],
  }[status];
  return animals.one === undefined ? [...order, linkTo(`#animals/${id}`, 'Edit')] : order; // or else the form is below
}

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

const membersOf = ({ name, categoryId }: Record<'name' | 'categoryId', Control>) =>
  objectOf({ name: JSON.stringify(name.value), categoryId: asTyped(categoryId.value) });

const addForm = new Form({
  title: 'Add an animal',
  button: 'Add',
  fields: [nameField(), categoryField()],
  submit: (controls) => postOnce<Pet>(PETS, membersOf(controls)),
  done: (pet, { isReplay }) => {
    void animals.load();
    const words = ` was added as animal ${pet.id}${isReplay ? ', by the request before' : ''}. `;
    return [nameIn(pet.name), words, el('a', { href: `#animals/${pet.id}`, text: 'Show it' })];
  },
  emptied: 'name',
});

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
  animals.remove(id, `Animal ${id}, ${petNames.get(id)}, was removed.`);
}

const editForm = new Form({
  title: 'Edit this animal',
  button: 'Save',
  fields: [nameField(), categoryField()],
  submit: async (controls) => {
    const { one: id = '' } = animals;
    const reply = await call<Pet>('PATCH', editedPath(), { body: membersOf(controls) });
    if (animals.one === id || reply === undefined || reply.ok) return reply;
    tellRefusal(id, reply.message);
    return undefined;
  },
  done: (pet, { text }) => {
    noteNames(petNames, [pet]);
    animals.change(pet.id, pet, text);
    return `Animal ${pet.id} is saved.`;
  },
  buttons: [el('span', {}, confirmButton('Remove …', 'Remove this animal', 'Yes, remove', removeEdited))],
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
      editForm.controls.categoryId.value = String(pet.categoryId);
    },
  },
});

hear(['categories'], () => animals.drawRows());

export const animalsView = {
  title: 'Animals',
  list: animals,
  parts: [addForm.drawer(), animals.element],
  clear: () => {
    petNames.clear();
    animals.clear();
  },
};
export const ordersView = {
  title: 'Orders',
  list: orders,
  parts: [placeForm.drawer(), orders.element],
  clear: () => orders.clear(),
};
