/**
 * The address names the view and its page: `#animals?status=sold&after=10`, `#animals/7`, `#reference/createPet`.
 * `trail`, which the browser keeps with the address: the beginnings of the pages before this one, in order.
 */

/** As it is shown and compared: `007` and `7` are one id. Undefined if the address has none. */
function readId(text = '') {
  if (/^\d+$/.test(text)) return String(BigInt(text));
  try {
    return decodeURIComponent(text) || undefined;
  } catch {
    return text;
  }
}

export function place() {
  const [path, query] = location.hash.slice(1).split('?');
  const [view, written] = path.split('/');
  const id = readId(written);
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
