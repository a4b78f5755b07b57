/** The start of the page: shows the view that the address names, and reads its data once there is a key. */
import { byId, el, ignoreSecondClicks } from './dom.ts';
import { startFocus, viewHeading } from './focus.ts';
import { clearForms } from './form.ts';
import { address } from './list.ts';
import { startPanel } from './panel.ts';
import { startRequests } from './requests.ts';
import { animalsView, ordersView } from './shop.ts';
import { tryView } from './try.ts';
import { hear, wire } from './wire.ts';

interface View {
  title: string;
  parts: HTMLElement[];
  /** Reads what the address asks for. */
  show(): unknown;
  /** Forgets what was read. */
  clear(): void;
}

const views: Record<string, View> = { animals: animalsView, orders: ordersView, try: tryView };

/** The view that the address names, or else the first one. */
function show(): void {
  const { view } = address();
  const shown = Object.hasOwn(views, view) ? view : 'animals';
  const isWelcome = wire.key === '';
  byId('welcome').hidden = !isWelcome;
  for (const name of Object.keys(views)) {
    byId(name).hidden = name !== shown || isWelcome;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === shown) link?.setAttribute('aria-current', 'page');
    else link?.removeAttribute('aria-current');
  }
  document.title = `${isWelcome ? 'Welcome' : views[shown].title} · petstore console`; // tells tabs and the way back apart
  if (!isWelcome) views[shown].show();
}

/** Begins with a new key, or without one. */
function start(): void {
  for (const view of Object.values(views)) view.clear();
  show();
}

for (const [name, { title, parts }] of Object.entries(views)) {
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
hear('start', start);
hear('resume', show);
let { view: shownBefore } = address();
addEventListener('hashchange', () => {
  clearForms();
  show();
  const { view } = address();
  if (view !== shownBefore) {
    viewHeading()?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  shownBefore = view;
});
ignoreSecondClicks();
start();
