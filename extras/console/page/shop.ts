/** Animals and orders, and the names of categories beside them. */
import { badge, type Child, type Content, el, nameIn, sendButton } from './dom.ts';
import { Form, idInput, textInput } from './form.ts';
import { asTyped, objectOf } from './json.ts';
import { List } from './list.ts';
import type { Category, Id, Order, OrderStatus, Pet, PetStatus } from './model.ts';
import { tryLink } from './try.ts';
import { call, hear, postOnce, wire } from './wire.ts';

const PETS = '/v1/pets';
const ORDERS = '/v1/store/orders';
const CATEGORIES = '/v1/categories';
const PET_STATUSES: PetStatus[] = ['available', 'pending', 'sold'];
const ORDER_STATUSES: OrderStatus[] = ['placed', 'delivered', 'cancelled'];
type Ending = Exclude<OrderStatus, 'placed'>;
/** What becomes of the animal when its order ends so. */
const OUTCOME: Record<Ending, PetStatus> = { delivered: 'sold', cancelled: 'available' };
const SMALL = { class: 'small' };

/** Names by id, as text: as far as they were seen. */
const petNames = new Map<string, string>();
const categoryNames = new Map<string, string>();

function noteNames(names: Map<string, string>, items: { id: Id; name: string }[]): void {
  for (const { id, name } of items) names.set(String(id), name);
}

const idText = (id: Id) => el('span', { class: 'number', text: String(id) });
const nameText = (name: string) => el('span', { class: 'name', title: name, text: name });

function named(names: Map<string, string>, id: Id, shown: HTMLElement = idText(id)): Child[] {
  const name = names.get(String(id));
  return name === undefined ? [shown] : [nameText(name), ' ', shown];
}

/** The address of the page that begins with this animal. */
const fromAnimal = (id: Id): string => `#animals?after=${BigInt(id) - 1n}`;

// Categories

const suggestions = el('datalist', { id: 'category-ids' });
document.body.append(suggestions);
let areNamesRead = false;
hear('exchange', () => {
  if (wire.newest?.method === 'PUT') areNamesRead = false; // a category may have another name
});

/** One page of them should do. They are read after a view was, and only if the key is accepted. */
async function readCategoryNames(): Promise<void> {
  if (areNamesRead || !wire.isAccepted || wire.wait !== undefined) return;
  areNamesRead = true;
  const reply = await call<Category[]>('GET', `${CATEGORIES}?limit=100`);
  if (!reply?.ok) return;
  noteNames(categoryNames, reply.value);
  suggestions.replaceChildren(...[...categoryNames].map(([value, text]) => el('option', { value, text })));
  animals.drawRows();
}

// Orders

/** `petId` as it was typed. */
const placeOrder = (petId: string) => postOnce<Order>(ORDERS, objectOf({ petId: asTyped(petId) }));

async function closeOrder(id: Id, status: Ending): Promise<void> {
  const body = objectOf({ status: JSON.stringify(status) });
  const reply = await call<Order>('PATCH', `${ORDERS}/${id}`, { body });
  if (reply === undefined) return;
  if (reply.ok) orders.change(id, { status });
  else if (reply.status === 409) await orders.load(); // another client was quicker
  const done = (petId: Id) => `Order ${id} is ${status}; animal ${petId} is ${OUTCOME[status]}.`;
  orders.report(reply.ok ? done(reply.value.petId) : reply.message, !reply.ok);
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

const animalLink = (id: Id) => el('a', { class: 'number', href: fromAnimal(id), text: String(id) });

const orders = new List<Order>({
  view: 'orders',
  path: ORDERS,
  thing: 'order',
  things: 'orders',
  statuses: ORDER_STATUSES,
  empty: 'No orders yet. Place one above, or from the row of an animal.',
  columns: [
    ['col-id', 'Id', ({ id }) => idText(id)],
    ['col-main', 'Animal', ({ petId }) => named(petNames, petId, animalLink(petId))],
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

async function orderRow({ id, name }: Pet): Promise<void> {
  const reply = await placeOrder(String(id));
  if (reply === undefined) return;
  if (reply.ok) animals.change(id, { status: 'pending' });
  else if (reply.status === 409) await animals.load(); // another client was quicker
  if (reply.ok) animals.report([`Order ${reply.value.id} was placed for `, nameIn(name), `, animal ${id}.`]);
  else animals.report(reply.message, true);
}

/** All that can be done with an animal but an order is a request to try, filled in. */
function actions(pet: Pet): Content {
  const { id, name, categoryId, status } = pet;
  const label = `${name}, animal ${id}`;
  const linkTo = (href: string, text: string) =>
    el('a', { class: 'action', href, 'aria-label': `${text}: ${label}`, text });
  const order = {
    available: [sendButton('Order', () => orderRow(pet), { ...SMALL, 'aria-label': `Order ${label}` })],
    pending: [linkTo('#orders?status=placed', 'Its order')],
    sold: [],
  }[status];
  const body = objectOf({ name: JSON.stringify(name), categoryId: String(categoryId) });
  return [...order, linkTo(tryLink('PATCH', `${PETS}/${id}`, body), 'Edit')];
}

const addForm = new Form({
  title: 'Add an animal',
  button: 'Add',
  fields: [
    { name: 'name', label: 'Name', control: textInput(), hint: '1 to 255 characters', needed: 'Enter a name.' },
    {
      name: 'categoryId',
      label: 'Category',
      control: idInput({ list: suggestions.id }),
      hint: 'Its id: any 64-bit integer',
      needed: 'Enter the id of a category.',
    },
  ],
  submit: ({ name, categoryId }) =>
    postOnce<Pet>(PETS, objectOf({ name: JSON.stringify(name.value), categoryId: asTyped(categoryId.value) })),
  done: (pet, { isReplay }) => {
    void animals.load();
    const words = ` was added as animal ${pet.id}${isReplay ? ', by the request before' : ''}. `;
    return [nameIn(pet.name), words, el('a', { href: fromAnimal(pet.id), text: 'Show it' })];
  },
  emptied: 'name',
});

const animals: List<Pet> = new List({
  view: 'animals',
  path: PETS,
  thing: 'animal',
  things: 'animals',
  statuses: PET_STATUSES,
  empty: 'No animals yet. Add the first one above.',
  columns: [
    ['col-id', 'Id', ({ id }) => idText(id)],
    ['col-main', 'Name', ({ name }) => nameText(name)],
    ['col-more', 'Category', ({ categoryId }) => named(categoryNames, categoryId)],
    ['col-status', 'Status', ({ status }) => badge(status)],
    ['col-actions', 'Actions', actions],
  ],
  seen: (page) => noteNames(petNames, page),
});

export const animalsView = {
  title: 'Animals',
  parts: [addForm.drawer(), animals.element],
  show: () => animals.show().then(readCategoryNames),
  clear: () => {
    areNamesRead = false;
    categoryNames.clear();
    suggestions.replaceChildren();
    petNames.clear();
    animals.clear();
  },
};
export const ordersView = {
  title: 'Orders',
  parts: [placeForm.drawer(), orders.element],
  show: () => orders.show(),
  clear: () => orders.clear(),
};
