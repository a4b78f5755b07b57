/** Orders: placed, delivered, cancelled; here and from the rows of animals. */
import { ask, badge, button, el, isSecondClick, mayFocus } from './dom.js';
import { Form, idInput } from './form.js';
import { asTyped, objectOf } from './json.js';
import { List } from './list.js';
import { idLink, named, noteOrder, openOrders, petMoved, petNames, sameId, searches } from './shop.js';
import { call, postOnce } from './wire.js';

const MAX_LOOKUP_PAGES = 5;
const MAX_NAME_REQUESTS = 3;
const MAX_PAGE = 100n;
const ORDERS = '/v1/store/orders';
const OUTCOME = { delivered: 'sold', cancelled: 'available' };

/** `petId` as it was typed. */
export async function placeOrder(petId) {
  const reply = await postOnce(ORDERS, objectOf({ petId: petId === '' ? undefined : asTyped(petId) }));
  if (reply?.ok) {
    noteOrder(reply.value);
    if (orders.append(reply.value)) nameAnimals([reply.value]);
  }
  return reply;
}

async function closeOrder(id, status) {
  const reply = await call('PATCH', `${ORDERS}/${id}`, { body: objectOf({ status: JSON.stringify(status) }) });
  if (reply?.ok) showClosed(reply.value, OUTCOME[status]);
  if (reply?.status !== 409) return reply;
  const now = await call('GET', `${ORDERS}/${id}`, { again: true }); // somebody was quicker
  if (now?.ok) showClosed(now.value);
  return reply;
}

/** `petStatus`: undefined if it is not known from the order; the animal may have been ordered again. */
function showClosed(order, petStatus) {
  noteOrder(order);
  for (const one of orders.shown()) if (sameId(one.id, order.id)) one.status = order.status;
  orders.refresh(order.id);
  petMoved(order.petId, petStatus);
}

/**
 * The buttons that close an order, each of which asks first. `whose`: the order in words, for screen readers.
 * `say(text, bad)` tells the result.
 */
export function closers(orderId, whose, say) {
  const draw = (place, at) => {
    const buttons = closers(orderId, whose, say);
    const isHere = mayFocus(place);
    place.replaceChildren(...buttons);
    if (isHere) buttons[at].focus();
  };
  const closer = (text, status, at) => {
    const press = (event) => {
      if (isSecondClick(event)) return;
      const place = event.currentTarget.parentElement;
      const act = async () => {
        const reply = await closeOrder(orderId, status);
        if (reply?.ok) return say(`Order ${orderId} is ${status}; animal ${reply.value.petId} is ${OUTCOME[status]}.`);
        draw(place, at);
        if (reply !== undefined) say(reply.message, true);
      };
      ask(place, {
        question: `${text} ${whose}?`,
        yes: `Yes, ${text.toLowerCase()}`,
        act,
        keep: () => draw(place, at),
      });
    };
    return button(text, press, { class: 'small', 'aria-label': `${text} ${whose}` });
  };
  return [closer('Deliver', 'delivered', 0), closer('Cancel', 'cancelled', 1)];
}

/** Reads the names of the animals in a page of orders, which lack them, as far as a few requests give them. */
async function nameAnimals(page) {
  const ids = new Set(page.map(({ petId }) => String(petId)).filter((id) => !petNames.has(id)));
  const unknown = [...ids].map(BigInt).sort((a, b) => (a < b ? -1 : 1));
  for (let asked = 0; unknown.length > 0 && asked < MAX_NAME_REQUESTS; asked++) {
    const [first] = unknown;
    const near = unknown.filter((id) => id < first + MAX_PAGE);
    const limit = near.at(-1) - first + 1n;
    const reply = await call('GET', `/v1/pets?limit=${limit}&after=${first - 1n}`, { again: true });
    if (!reply?.ok) return;
    for (const { id, name } of reply.value) petNames.set(String(id), name);
    unknown.splice(0, near.length);
  }
  if (ids.size > 0) orders.drawRows();
}

/**
 * Finds the open order of an animal. Animals do not name it, so open orders are read until it is found, a few pages at
 * a time: the next call goes on where this one ended. Undefined: there is none.
 */
export async function findOrder(petId) {
  let url = searches.get(String(petId)) ?? `${ORDERS}?limit=${MAX_PAGE}&status=placed`;
  for (let page = 0; page < MAX_LOOKUP_PAGES && url !== undefined; page++) {
    const reply = await call('GET', url, { again: true });
    if (!reply?.ok) return reply;
    reply.value.forEach(noteOrder);
    if (openOrders.has(String(petId))) return reply;
    url = reply.next;
  }
  if (url !== undefined) {
    searches.set(String(petId), url);
    return { ok: false, message: `Not among the open orders up to ${afterOf(url)}. Press again to look on.` };
  }
  searches.delete(String(petId));
  openOrders.set(String(petId), null);
  return undefined;
}

const afterOf = (path) => new URL(path, location.origin).searchParams.get('after');

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
    ['col-id', 'Id', ({ id }) => [idLink('orders', id)]],
    ['col-main', 'Animal', ({ petId }) => named(petNames, petId, idLink('animals', petId))],
    ['col-more', 'Placed', (order) => [when(order)]],
    ['col-status', 'Status', ({ status }) => [badge(status)]],
    ['col-actions', 'Actions', ({ id, status }) => (status === 'placed' ? closersOf(id) : [])],
  ],
  seen: (page) => {
    page.forEach(noteOrder);
    nameAnimals(page);
  },
});

const closersOf = (id) => closers(id, `order ${id}`, (text, bad) => orders.say(id, text, bad));

const placeForm = new Form({
  title: 'Place an order',
  button: 'Place',
  fields: [['petId', 'Animal', idInput(), 'The id of an available animal']],
  submit: ({ petId }) => placeOrder(petId.value),
  done: ({ id, petId }) => {
    petMoved(petId, 'pending');
    return `Order ${id} was placed for animal ${petId}.`;
  },
  emptied: 'petId',
});

export const ordersView = { title: 'Orders', list: orders, parts: [placeForm.drawer(), orders.element] };
