/** The start of the page: shows the view that the address names, and reads its data once there is a key. */
import { animalsView } from './animals.js';
import { categoriesView } from './categories.js';
import { byId, el, ignoreHeldKeys, viewHeading } from './dom.js';
import { startExchanges } from './exchanges.js';
import { clearForms } from './form.js';
import { labView } from './lab.js';
import { ordersView } from './orders.js';
import { startPanel } from './panel.js';
import { place } from './place.js';
import { referenceView } from './reference.js';
import { forgetNames } from './shop.js';
import { bus, wire } from './wire.js';

const views = { animals: animalsView, orders: ordersView, categories: categoriesView, reference: referenceView };
if (document.body.dataset.lab === 'true') views.lab = labView;
const lists = [animalsView.list, ordersView.list, categoriesView.list];

/** The name of the view that the address names, or else of the first one. */
const shownView = () => (Object.hasOwn(views, place().view) ? place().view : 'animals');

/** Shows the view that the address names, and reads its list if it is not there already. */
async function show() {
  const name = shownView();
  const welcome = wire.key === '' && name !== 'reference';
  byId('welcome').hidden = !welcome;
  for (const one of Object.keys(views)) {
    byId(one).hidden = one !== name || welcome;
    const link = document.querySelector(`nav a[href="#${one}"]`);
    if (one === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const view = views[name];
  const heading = view.list?.onePath && place().id ? `${view.title} ${place().id}` : view.title;
  document.title = `${welcome ? 'Welcome' : heading} · petstore console`; // tells tabs and the way back apart
  if (welcome) return;
  await (view.list ?? view).show();
  if (view === animalsView || view === ordersView) await nameCategories();
}

let areCategoriesNamed = false;

/** Their names stand beside the animals. They are read after the view, and only if the key is accepted. */
async function nameCategories() {
  if (areCategoriesNamed || wire.standing !== 'accepted' || wire.wait !== undefined) return;
  areCategoriesNamed = true;
  await categoriesView.list.show({ query: new URLSearchParams(), trail: [] });
}

function forget() {
  forgetNames();
  areCategoriesNamed = false;
  for (const list of lists) list.clear();
}

/** Begins with a new key. */
async function start() {
  forget();
  await show();
}

for (const [name, { title, parts }] of Object.entries(views)) {
  byId(name).append(el('h2', { text: title, tabindex: -1 }), ...parts);
}
for (const part of document.querySelectorAll('.page, nav')) part.hidden = false;
if (views.lab === undefined) document.querySelector('nav a[href="#lab"]').remove();
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // the address goes on naming the view
  byId('main').focus();
});
startPanel();
startExchanges();
ignoreHeldKeys();
bus.addEventListener('start', start);
bus.addEventListener('reset', forget); // the number of an order that it remembers may be that of another one now
bus.addEventListener('again', () => {
  const view = views[shownView()];
  if (view.list === undefined) view.show();
  else view.list.load();
});
bus.addEventListener('key', () => {
  if (wire.key !== '') return;
  forget();
  show();
});
let [shown] = location.hash.split('?');
addEventListener('hashchange', async () => {
  clearForms();
  const done = show();
  const [path] = location.hash.split('?');
  if (path !== shown) {
    viewHeading()?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = path;
  await done;
});
if (wire.key === '') show();
else start();
