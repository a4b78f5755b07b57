/** The start of the page: shows the view that the address names, and reads its data once there is a key. */
import { categoriesView } from './categories.js';
import { byId, el, ignoreHeldKeys, viewHeading } from './dom.js';
import { clearForms } from './form.js';
import { labView } from './lab.js';
import { address } from './list.js';
import { startPanel } from './panel.js';
import { referenceView } from './reference.js';
import { startRequests } from './requests.js';
import { animalsView, ordersView } from './shop.js';
import { bus, wire } from './wire.js';

const lists = { animals: animalsView, orders: ordersView, categories: categoriesView };
const views = { ...lists, reference: referenceView };
if (document.body.dataset.lab === 'true') views.lab = labView;
else document.querySelector('nav a[href="#lab"]').remove();

/** The name of the view that the address names, or else of the first one. */
const shownView = () => (Object.hasOwn(views, address().view) ? address().view : 'animals');

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
  const heading = view.list?.onePath && address().id ? `${view.title} ${address().id}` : view.title;
  document.title = `${welcome ? 'Welcome' : heading} · petstore console`; // tells tabs and the way back apart
  if (welcome) return;
  await (view.list ?? view).show();
  if (name === 'animals' || name === 'orders') await nameCategories();
}

let areCategoriesNamed = false;

/** Their names stand beside the animals. They are read after the view, and only if the key is accepted. */
async function nameCategories() {
  if (areCategoriesNamed || wire.standing !== 'accepted' || wire.wait !== undefined) return;
  areCategoriesNamed = true;
  await views.categories.list.show({ query: new URLSearchParams(), trail: [] });
}

function clear() {
  for (const { clear } of Object.values(lists)) clear();
  areCategoriesNamed = false;
}

/** Begins with a new key, or without one. */
function start() {
  clear();
  return show();
}

for (const [name, { title, parts }] of Object.entries(views)) {
  byId(name).append(el('h2', { text: title, tabindex: -1 }), ...parts);
}
for (const part of document.querySelectorAll('.page, nav')) part.hidden = false;
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault(); // the address goes on naming the view
  byId('main').focus();
});
startPanel();
startRequests();
ignoreHeldKeys();
bus.addEventListener('start', start);
bus.addEventListener('key', () => wire.key === '' && start());
bus.addEventListener('reset', clear); // the number of an order that it remembers may be that of another one now
bus.addEventListener('resume', show);
bus.addEventListener('retry', () => {
  const { list } = views[shownView()];
  if (list === undefined) show();
  else list.load();
});
let [shown] = location.hash.split('?');
addEventListener('hashchange', () => {
  clearForms();
  show();
  const [path] = location.hash.split('?');
  if (path !== shown) {
    viewHeading()?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = path;
});
start();
