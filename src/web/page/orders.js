/** Orders: placed, delivered, cancelled; here and from the rows of animals. */
import { badge, el, note, say, sendButton } from './dom.js';
import { Form, idInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { List } from './list.js';
import { idLink, named, noteOrder, openOrders, petMoved, petNames, postOnce, sameId } from './shop.js';
import { call } from './wire.js';

const MAX_LOOKUP_PAGES = 5;
const ORDERS = '/v1/store/orders';
const OUTCOME = { delivered: 'sold', cancelled: 'available' };

const placeOnce = postOnce();
const orderNote = note();

/** `petId` as it was typed. */
export async function placeOrder(petId) {
  const reply = await placeOnce(ORDERS, objectOf({ petId: petId === '' ? undefined : asTyped(petId) }));
  if (reply?.ok) {
    noteOrder(reply.value);
    orders.append(reply.value);
  }
  return reply;
}

async function closeOrder(id, status, told) {
  const reply = await call('PATCH', `${ORDERS}/${id}`, { body: objectOf({ status: JSON.stringify(status) }) });
  if (reply === undefined) return;
  if (!reply.ok) return say(told, reply.message, true);
  noteOrder(reply.value);
  for (const order of orders.items) if (sameId(order.id, id)) order.status = status;
  orders.refresh(id);
  const { petId } = reply.value;
  petMoved(petId, OUTCOME[status]);
  say(told, `Order ${id} is ${status}; animal ${petId} is ${OUTCOME[status]}.`);
}

/** The buttons that close an order; what came of it is said in `told`. */
export function closers(orderId, whose, told) {
  const closer = (text, status) =>
    sendButton(text, () => closeOrder(orderId, status, told), { class: 'small', 'aria-label': `${text} ${whose}` });
  return [closer('Deliver', 'delivered'), closer('Cancel', 'cancelled')];
}

/** The interface does not say which order an animal is in: the open ones are read until it is found. */
export async function findOrder(petId) {
  let url = `${ORDERS}?limit=100&status=placed`;
  for (let page = 0; page < MAX_LOOKUP_PAGES && url !== undefined; page++) {
    const reply = await call('GET', url);
    if (!reply?.ok) return reply;
    reply.value.forEach(noteOrder);
    if (openOrders.has(String(petId))) return reply;
    url = reply.next;
  }
  openOrders.set(String(petId), null);
  return undefined;
}

function when({ placedAt }) {
  const text = new Date(placedAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
  return el('time', { datetime: placedAt, title: placedAt, text });
}

const orders = new List({
  view: 'orders',
  path: ORDERS,
  onePath: (id) => `${ORDERS}/${id}`,
  thing: 'order',
  things: 'orders',
  statuses: ['placed', 'delivered', 'cancelled'],
  empty: 'No orders yet. Place one above, or from the row of an animal.',
  columns: [
    ['col-id', 'Id', ({ id }) => [idLink('orders', id)]],
    ['col-main', 'Animal', ({ petId }) => named(petNames, petId, idLink('animals', petId))],
    ['col-more', 'Placed', (order) => [when(order)]],
    ['col-status', 'Status', ({ status }) => [badge(status)]],
    ['col-actions', 'Actions', ({ id, status }) => (status === 'placed' ? closers(id, `order ${id}`, orderNote) : [])],
  ],
  seen: (page) => page.forEach(noteOrder),
});

const placeForm = new Form({
  title: 'Place an order',
  button: 'Place',
  fields: [['petId', 'Animal', idInput(), 'The id of an available animal']],
  submit: ({ petId }) => placeOrder(petId.value),
  done: ({ id, petId }) => {
    petMoved(petId, 'pending');
    placeForm.controls.petId.value = '';
    placeForm.controls.petId.focus();
    return `Order ${id} was placed for animal ${petId}.`;
  },
});

export const ordersView = { title: 'Orders', list: orders, parts: [placeForm.drawer(), orderNote, orders.element] };
