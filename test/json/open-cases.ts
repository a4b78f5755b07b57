/** What RFC 8259 leaves open, or other readers take: refused here, each with its reason and place. */
export type Source = string | Uint8Array;

const LONE = 'half of a surrogate pair';
const TWICE = 'is there twice';
const BOM = 'byte order mark';
/** Refused here and read by JSON.parse, for one of the rules that have a name. */
export const EXTRA_RULES = new RegExp([LONE, TWICE, BOM].join('|'));

/** JSON to many readers, refused here: the text, what the message says, and where (in bytes). */
export const REFUSED: [text: string, says: string, offset: number][] = [
  ['"\\ud800"', LONE, 1],
  ['"\\udc00"', LONE, 1],
  ['"ab\\uDFAA"', LONE, 3],
  ['"\\ud800\\ud800"', LONE, 1],
  ['"\\ud800\\ud800\\udc00"', LONE, 1],
  ['"\\udc00\\ud800"', LONE, 1],
  ['"\\uD800a"', LONE, 1],
  ['"\\ud83d\\u0041"', LONE, 1],
  ['"\\ud83d\\n"', LONE, 1],
  ['"\\ud83d😀"', LONE, 1],
  ['"é\\ud83d\\\\udc00"', LONE, 3],
  ['"\\uD83D\\uDE00\\uDE00"', LONE, 13],
  ['{"\\ud800":1}', LONE, 2],
  ['{"a":1,"a":1}', TWICE, 7],
  ['{"a":1,"b":2,"a":3}', TWICE, 13],
  ['{"a":1,"\\u0061":2}', TWICE, 7],
  ['{"\\u00e9":1,"é":2}', TWICE, 12],
  ['{"\\ud83d\\ude00":1,"😀":2}', TWICE, 18],
  ['{"":1,"":2}', TWICE, 6],
  ['{"__proto__":1,"__proto__":2}', TWICE, 15],
  ['[{"x":{"k":1,"\\u006b":2}}]', TWICE, 13],
  ['{"/":1,"\\/":2}', TWICE, 7],
  ['\ufeff{}', BOM, 0],
  ['\ufeff', BOM, 0],
];

const bytes = (...values: number[]) => Uint8Array.from(values);
const quoted = (...values: number[]) => bytes(0x22, ...values, 0x22);

/** No UTF-8: the bytes and the offset of the first that is wrong. */
export const NOT_UTF8: [bytes: Uint8Array, offset: number][] = [
  [bytes(0xff), 0],
  [bytes(0xff, 0xfe, 0x5b, 0, 0x5d, 0), 0],
  [bytes(0xfe, 0xff, 0, 0x5b, 0, 0x5d), 0],
  [bytes(0xef, 0xbb), 0],
  [bytes(0x5b, 0xe5, 0x5d), 1],
  [bytes(0x5b, 0x31, 0xe5, 0x5d), 2],
  [bytes(0x31, 0xc3), 1],
  [quoted(0x80), 1],
  [quoted(0xe9), 1],
  [quoted(0xc3), 1],
  [quoted(0xc3, 0xa9, 0x80), 3],
  [quoted(0xc0, 0x80), 1],
  [quoted(0xc0, 0xaf), 1],
  [quoted(0xc1, 0xbf), 1],
  [quoted(0xe0, 0x80, 0xaf), 1],
  [quoted(0xf0, 0x80, 0x80, 0xaf), 1],
  [quoted(0xfc, 0x83, 0xbf, 0xbf, 0xbf, 0xbf), 1],
  [quoted(0xed, 0xa0, 0x80), 1],
  [quoted(0xed, 0xbf, 0xbf), 1],
  [quoted(0xf4, 0x90, 0x80, 0x80), 1],
  [quoted(0xf5, 0x80, 0x80, 0x80), 1],
  [quoted(0xef, 0xbf), 1],
  [quoted(0xef, 0xbf, 0xbd, 0xff), 4],
  [quoted(0xef, 0xbf, 0xbd, 0x61, 0xef, 0xbf, 0xbd, 0xef, 0xbf), 8],
  [quoted(0x5c, 0x75, 0x30, 0x30, 0x30, 0xe5), 6],
  [quoted(0x5c, 0xe5), 2],
  [bytes(0x7b, 0x22, 0xb9, 0x22, 0x3a, 0x31, 0x7d), 2],
];
