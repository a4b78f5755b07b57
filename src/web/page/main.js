/** The start: which view is shown, and what is read when a key is there. */
import { animalsView } from './animals.js';
import { categoriesView } from './categories.js';
import { byId, el } from './dom.js';
import { startExchanges } from './exchanges.js';
import { ordersView } from './orders.js';
import { startPanel } from './panel.js';
import { showReference } from './reference.js';
import { forgetNames } from './shop.js';
import { bus, wire } from './wire.js';

const VIEWS = new Map([
  ['animals', animalsView],
  ['orders', ordersView],
  ['categories', categoriesView],
  ['reference', undefined],
]);

const chosen = () => (VIEWS.has(location.hash.slice(1)) ? location.hash.slice(1) : 'animals');

/** Shows the view that is chosen, and reads what it lists if that was not done. */
async function show() {
  const name = chosen();
  const welcome = wire.standing === 'none' && name !== 'reference';
  byId('welcome').hidden = !welcome;
  for (const one of VIEWS.keys()) {
    byId(one).hidden = one !== name || welcome;
    const link = document.querySelector(`nav a[href="#${one}"]`);
    if (one === name) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (name === 'reference') await showReference();
  else if (wire.standing !== 'none') await VIEWS.get(name).list.fill();
}

function forget() {
  forgetNames();
  for (const view of VIEWS.values()) view?.list.clear();
}

/** A new key. The names of categories come after the view, when it is known that the key is good. */
async function start() {
  forget();
  await show();
  if (wire.standing === 'accepted') await categoriesView.list.fill();
}

for (const [name, view] of VIEWS) {
  if (view === undefined) continue;
  byId(name).append(el('div', { class: 'card' }, el('h2', { text: view.title, tabindex: -1 }), ...view.parts));
}
startPanel();
startExchanges();
bus.addEventListener('start', start);
bus.addEventListener('key', () => {
  if (wire.standing !== 'none') return;
  forget();
  show();
});
addEventListener('hashchange', async () => {
  if (!VIEWS.has(location.hash.slice(1))) return; // the skip link
  const shown = show();
  byId(chosen()).querySelector('h2').focus({ preventScroll: true });
  scrollTo(0, 0);
  await shown;
});
if (wire.key === '') show();
else start();
