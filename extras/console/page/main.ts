/** The start of the page: shows the view that the address names, and reads its data once there is a key. */
import { categoriesView, readCategoryNames } from './categories.ts';
import { byId, el, ignoreSecondClicks } from './dom.ts';
import { startFocus, viewHeading } from './focus.ts';
import { clearForms } from './form.ts';
import { labView } from './lab.ts';
import { address } from './list.ts';
import { startPanel } from './panel.ts';
import { referenceView } from './reference.ts';
import { startRequests } from './requests.ts';
import { animalsView, ordersView } from './shop.ts';
import { hear, wire } from './wire.ts';

interface View {
  title: string;
  parts: HTMLElement[];
  show(): Promise<void>;
  /** Reads again what is shown. */
  load(): Promise<void>;
  /** Whether an id in the address names one item of the view. */
  hasItems?: boolean;
}

const lists = { animals: animalsView, orders: ordersView, categories: categoriesView };
const ofList = ({ title, parts, list }: (typeof lists)[keyof typeof lists]): View => {
  return { title, parts, show: () => list.show(), load: () => list.load(), hasItems: list.hasItems };
};
const views = new Map<string, View>(Object.entries(lists).map(([name, view]) => [name, ofList(view)]));
views.set('reference', referenceView);
if (document.body.dataset.lab === 'true') views.set('lab', labView);
else document.querySelector('nav a[href="#lab"]')?.remove();

/** The view that the address names, or else the first one. */
function shownView(): [name: string, view: View] {
  const { view: name } = address();
  const view = views.get(name);
  return view === undefined ? ['animals', views.get('animals') as View] : [name, view];
}

/** Shows the view that the address names, and reads its list if it is not there already. */
async function show(): Promise<void> {
  const [name, view] = shownView();
  const isWelcome = wire.key === '' && name !== 'reference';
  byId('welcome').hidden = !isWelcome;
  for (const one of views.keys()) {
    byId(one).hidden = one !== name || isWelcome;
    const link = document.querySelector(`nav a[href="#${one}"]`);
    if (one === name) link?.setAttribute('aria-current', 'page');
    else link?.removeAttribute('aria-current');
  }
  const { id } = address();
  const heading = view.hasItems && id ? `${view.title} ${id}` : view.title;
  document.title = `${isWelcome ? 'Welcome' : heading} · petstore console`; // tells tabs and the way back apart
  if (isWelcome) return;
  await view.show();
  if (name === 'animals' || name === 'orders') await readCategoryNames();
}

function clear(): void {
  for (const { clear } of Object.values(lists)) clear();
}

/** Begins with a new key, or without one. */
function start(): Promise<void> {
  clear();
  return show();
}

for (const [name, { title, parts }] of views) {
  byId(name).append(el('h2', { text: title, tabindex: -1 }), ...parts);
}
for (const part of document.querySelectorAll<HTMLElement>('.page, nav')) part.hidden = false;
document.querySelector('.skip')?.addEventListener('click', (event) => {
  event.preventDefault(); // the address goes on naming the view
  byId('main').focus();
});
startFocus();
startPanel();
startRequests();
hear(['start'], start);
hear(['key'], () => wire.key === '' && start());
hear(['reset'], clear); // the number of an order that it remembers may be that of another one now
hear(['resume'], show);
hear(['retry'], () => shownView()[1].load());
let [shown] = location.hash.split('?');
addEventListener('hashchange', () => {
  clearForms();
  void show();
  const [path] = location.hash.split('?');
  if (path !== shown) {
    viewHeading()?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shown = path;
});
ignoreSecondClicks();
void start();
