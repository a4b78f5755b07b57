/** Orders: placed, delivered, cancelled; here and from the rows of animals. */
import { badge, el, sendButton } from './dom.js';
import { Form } from './form.js';
import { asTyped, objectOf } from './json.js';
import { List } from './list.js';
import {
  formNote,
  idInput,
  named,
  noteOrder,
  numeral,
  openOrders,
  petMoved,
  petNames,
  postOnce,
  sameId,
  say,
} from './shop.js';
import { call } from './wire.js';

const MAX_LOOKUP_PAGES = 5;
const ORDERS = '/v1/store/orders';
const OUTCOME = { delivered: 'sold', cancelled: 'available' };

const placeOnce = postOnce();
const orderNote = formNote();

/** `petId` as it was typed. */
export async function placeOrder(petId) {
  const reply = await placeOnce(ORDERS, objectOf({ petId: petId === '' ? undefined : asTyped(petId) }));
  if (reply?.ok) {
    noteOrder(reply.value);
    orders.append(reply.value);
  }
  return reply;
}

async function closeOrder(id, status, note) {
  const reply = await call('PATCH', `${ORDERS}/${id}`, { body: objectOf({ status: JSON.stringify(status) }) });
  if (reply === undefined) return;
  if (!reply.ok) return say(note, reply.message, true);
  noteOrder(reply.value);
  for (const order of orders.items) if (sameId(order.id, id)) order.status = status;
  orders.refresh(id);
  const { petId } = reply.value;
  petMoved(petId, OUTCOME[status]);
  say(note, `Order ${id} is ${status}; animal ${petId} is ${OUTCOME[status]}.`);
}

/** The buttons that close an order; what came of it is said in `note`. */
export function closers(orderId, whose, note) {
  const button = (text, status) =>
    sendButton(text, () => closeOrder(orderId, status, note), { class: 'small', 'aria-label': `${text} ${whose}` });
  return [button('Deliver', 'delivered'), button('Cancel', 'cancelled')];
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

export const orders = new List({
  path: ORDERS,
  things: 'orders',
  statuses: ['placed', 'delivered', 'cancelled'],
  empty: 'No orders yet. Place one above, or from the row of an animal.',
  columns: [
    ['col-id', 'Id', ({ id }) => [numeral(id)]],
    ['col-main', 'Animal', ({ petId }) => named(petNames, petId)],
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
    return [`Order ${id} was placed for animal ${petId}.`];
  },
});

export const ordersView = { list: orders, title: 'Orders', parts: [placeForm.element, orderNote, orders.element] };
