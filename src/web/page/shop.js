/** Shared by the views of the shop: names and orders that one has read for the others, and the way they are shown. */
import { el } from './dom.js';
import { bus, call, isSettled, randomKey } from './wire.js';

/** By id, as text. `openOrders`: the order by its animal; null if there is none. `searches`: where to look on for it. */
export const categoryNames = new Map();
export const petNames = new Map();
export const openOrders = new Map();
export const searches = new Map();

/** Wishes whose outcome is open and which would still be known again. */
const MAX_OPEN_WISHES = 100;
/** A longer name may be cut in a list. */
const MAX_SHORT_NAME = 60;

export const sameId = (a, b) => String(a) === String(b);
export const nameText = (name) =>
  el('span', { class: 'name', title: name.length > MAX_SHORT_NAME ? name : undefined, text: name });
export const idText = (id) => el('span', { class: 'number', text: String(id) });
export const idLink = (view, id) => el('a', { class: 'number', href: `#${view}/${id}`, text: String(id) });

export function named(known, id, shown = idText(id)) {
  const name = known.get(String(id));
  return name === undefined ? [shown] : [nameText(name), ' ', shown];
}

/** Who asks for the same thing after a lost reply means the same one: it keeps its Idempotency-Key. */
export function postOnce() {
  const keys = new Map(); // by body, of all whose outcome is open
  return async (path, body) => {
    const key = keys.get(body) ?? randomKey();
    keys.set(body, key);
    if (keys.size > MAX_OPEN_WISHES) keys.delete(keys.keys().next().value);
    const reply = await call('POST', path, { body, headers: { 'Idempotency-Key': key } });
    if (reply !== undefined && isSettled(reply)) keys.delete(body);
    return reply;
  };
}

export function noteOrder({ id, petId, status }) {
  if (status === 'placed') openOrders.set(String(petId), id);
  else if (sameId(openOrders.get(String(petId)), id)) openOrders.delete(String(petId));
}

/** Tells the view of animals that an order changed the status of one. */
export function petMoved(petId, status) {
  bus.dispatchEvent(new CustomEvent('pet-moved', { detail: { petId, status } }));
}

export function forgetNames() {
  for (const known of [categoryNames, petNames, openOrders, searches]) known.clear();
}
