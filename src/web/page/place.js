/**
 * The address names the view and its page: `#animals?status=sold&after=10`, `#animals/7`, `#reference/createPet`.
 * `trail`, which the browser keeps with the address: the beginnings of the pages before this one, in order.
 */

export function place() {
  const [path, query] = location.hash.slice(1).split('?');
  const [view, id] = path.split('/');
  return { view, id, query: new URLSearchParams(query), trail: history.state?.trail ?? [] };
}

export function hashOf(view, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  return given.length === 0 ? `#${view}` : `#${view}?${new URLSearchParams(given)}`;
}

export function go(hash, trail = []) {
  history.pushState({ trail }, '', hash);
  dispatchEvent(new Event('hashchange'));
}
