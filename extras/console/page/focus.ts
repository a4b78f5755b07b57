/**
 * Remembers where the focus was. A change of the page may remove or hide the element that has it; the browser then
 * forgets the place, and who uses the keyboard would begin again at the top of the page.
 */

/** The element that has the focus, and those it stands in, from the inside: also when a change took it away. */
let place: Element[] = [];

/** `checkVisibility` is missing in browsers from before 2024. */
export const isVisible = (one: HTMLElement): boolean =>
  one.checkVisibility === undefined ? one.getClientRects().length > 0 : one.checkVisibility();

const isShown = (one: Element): boolean => one instanceof HTMLElement && one.isConnected && isVisible(one);

/** The heading of the view that is shown. */
export const viewHeading = () => document.querySelector<HTMLElement>('main section:not([hidden]) h2');

/** Whether the focus is in there, or nowhere: then it may be moved. */
export const mayFocus = (element: Element): boolean =>
  document.activeElement === document.body || element.contains(document.activeElement);

const nameOf = (one: Element): string | null => one.id || one.ariaLabel || one.textContent;

/**
 * Where the focus goes when its element is gone: to the same control, if it was made again; to the row of the same item,
 * its first action if it has one; to the last button of a group that lost this one; or else to the heading of its part of
 * the page.
 */
function nextTo([gone, ...around]: Element[]): HTMLElement | null {
  const box = around.find(isShown) ?? document.body;
  const all = [...box.querySelectorAll<HTMLElement>('a, button, summary, [tabindex]')].filter(isShown);
  const same = all.find((one) => nameOf(one) === nameOf(gone));
  const id = gone.closest<HTMLElement>('[data-id]')?.dataset.id;
  const row = id && all.find((one) => one.dataset.id === id);
  if (same) return same;
  if (row) return row.querySelector<HTMLElement>('button, .action') ?? row;
  const last = box === around[0] && all.findLast(({ tagName }) => tagName === 'BUTTON');
  const part = around.find((one) => one.tagName === 'SECTION' && isShown(one));
  return last || (part?.querySelector<HTMLElement>('h2[tabindex], h3[tabindex], summary') ?? viewHeading());
}

function restore(): void {
  const [focused] = place;
  const hasMoved = document.activeElement !== document.body && document.activeElement !== focused;
  if (focused === undefined || hasMoved || isShown(focused)) return;
  nextTo(place)?.focus({ preventScroll: true });
}

/** A key held down repeats its press, also on a button that takes the place of the first: only the first counts. */
function ignoreHeldKey(event: KeyboardEvent): void {
  const presses = event.key === 'Enter' && (event.target as Element).closest('button, summary, a, input') !== null;
  if (event.repeat && presses) event.preventDefault();
}

export function startFocus(): void {
  addEventListener('keydown', ignoreHeldKey, true);
  addEventListener('focusin', ({ target }) => {
    place = [];
    for (let one = target as Element | null; one !== null; one = one.parentElement) place.push(one);
  });
  addEventListener('focusout', () =>
    queueMicrotask(() => {
      if (document.activeElement === document.body && place[0] && isShown(place[0])) place = []; // the user left it
    }),
  );
  const attributeFilter = ['hidden', 'open'];
  new MutationObserver(restore).observe(document.body, { subtree: true, childList: true, attributeFilter });
}
