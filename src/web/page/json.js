/** JSON without a loss: a double holds integers to 2^53 only, the service's run to 2^63. */

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

/** An integer that a double cannot hold becomes the string of its digits, which is all a page needs of it. */
export function readJson(text) {
  const exact = text.replace(STRING_OR_NUMBER, (token) => {
    const inexact = token[0] !== '"' && /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token));
    return inexact ? `"${token}"` : token;
  });
  return JSON.parse(exact);
}

/** The same tokens, one member a line: no number is read, so none can change. */
export function indented(text) {
  let depth = 0;
  let out = '';
  let before = '';
  for (const [token] of text.matchAll(TOKEN)) {
    const opened = before === '{' || before === '[';
    const closes = token === '}' || token === ']';
    if (closes) depth--;
    if (before === ',' || opened !== closes)
      if (before !== '' && (opened || closes || before === ',')) out += `\n${'  '.repeat(depth)}`;
    out += token === ':' ? ': ' : token;
    if (token === '{' || token === '[') depth++;
    before = token;
  }
  return out;
}

/** The input as JSON: a number if it is one, else a string. The service judges it, not this page. */
export function asTyped(text) {
  const trimmed = text.trim();
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(trimmed) ? trimmed : JSON.stringify(text);
}

/** An object from texts that are JSON already; members that are undefined are left out. */
export function objectOf(members) {
  const present = Object.entries(members).filter(([, json]) => json !== undefined);
  return `{${present.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(',')}}`;
}
