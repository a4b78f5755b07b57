/** Shared by the views of the shop: names and orders that one has read for the others, and the way they are shown. */
import { el } from './dom.js';
import { bus } from './wire.js';

/** By id, as text. `openOrders`: the order by its animal; null if there is none. `searches`: where to look on for it. */
export const categoryNames = new Map();
export const petNames = new Map();
export const openOrders = new Map();
export const searches = new Map();

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

export function noteOrder({ id, petId, status }) {
  if (status === 'placed') openOrders.set(String(petId), id);
  else if (sameId(openOrders.get(String(petId)), id)) openOrders.delete(String(petId));
}

/** Tells the view of animals that an order changed the status of one: to this one, or to one that is to be read. */
export function petMoved(petId, status) {
  bus.dispatchEvent(new CustomEvent('pet-moved', { detail: { petId, status } }));
}

export function forgetNames() {
  for (const known of [categoryNames, petNames, openOrders, searches]) known.clear();
}
