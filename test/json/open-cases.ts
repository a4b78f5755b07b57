/** What RFC 8259 leaves open, or other readers take: refused here, each with its reason and place. */

/** JSON to many readers: what our message says, the text, and where (in bytes). */
export const REFUSED: Record<string, Record<string, number>> = {
  'half of a surrogate pair': {
    ...{ '"\\ud800"': 1, '"\\udc00"': 1, '"ab\\uDFAA"': 3, '"\\ud800\\ud800"': 1, '"\\ud800\\ud800\\udc00"': 1 },
    ...{ '"\\udc00\\ud800"': 1, '"\\uD800a"': 1, '"\\ud83d\\u0041"': 1, '"\\ud83d\\n"': 1, '"\\ud83d😀"': 1 },
    ...{ '"é\\ud83d\\\\udc00"': 3, '"\\uD83D\\uDE00\\uDE00"': 13, '{"\\ud800":1}': 2 },
  },
  'is there twice': {
    ...{ '{"a":1,"a":1}': 7, '{"a":1,"b":2,"a":3}': 13, '{"a":1,"\\u0061":2}': 7, '{"\\u00e9":1,"é":2}': 12 },
    ...{ '{"\\ud83d\\ude00":1,"😀":2}': 18, '{"":1,"":2}': 6, '{"__proto__":1,"__proto__":2}': 15 },
    ...{ '[{"x":{"k":1,"\\u006b":2}}]': 13, '{"/":1,"\\/":2}': 7 },
  },
  'byte order mark': { '\ufeff{}': 0, '\ufeff': 0 },
};
/** Refused here and read by JSON.parse, for one of the rules that have a name. */
export const EXTRA_RULES = new RegExp(Object.keys(REFUSED).join('|'));

/** No UTF-8: the bytes, and the offset of the first that is wrong. */
export const NOT_UTF8: Record<string, number> = {
  ...{ ff: 0, fffe5b005d00: 0, feff005b005d: 0, efbb: 0, '5be55d': 1, '5b31e55d': 2, '31c3': 1, '7b22b9223a317d': 2 },
  ...{ '228022': 1, '22e922': 1, '22c322': 1, '22c3a98022': 3, '22c08022': 1, '22c0af22': 1, '22c1bf22': 1 },
  ...{ '22e080af22': 1, '22f08080af22': 1, '22fc83bfbfbfbf22': 1, '22eda08022': 1, '22edbfbf22': 1 },
  ...{ '22f490808022': 1, '22f580808022': 1, '22efbf22': 1, '22efbfbdff22': 4, '22efbfbd61efbfbdefbf22': 8 },
  ...{ '225c75303030e522': 6, '225ce522': 2 },
};
