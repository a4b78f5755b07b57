/** What JSON is and what it is not, text by text. */

/** Divided by white space, and as they stand here: no escape is one of JavaScript's. */
const texts = ({ raw: [all] }: TemplateStringsArray) => all.trim().split(/\s+/);

/** Read as JSON.parse reads it. */
export const VALID: string[] = [
  ...texts`
    [] {} [[]] [{}] {"a":[]} [[],[[]]] [1,null,true,"x"] null true false 1 0 -1 "" "a" {"a":1,"b":2} {"":0}
    {"a":{"a":{"a":1}}} {"a":1,"A":2} {"a":1,"a\u0000":1} {"__proto__":1} {"constructor":1,"toString":2}
    {"a":{"__proto__":{"b":1}}} {"0":1,"1":2} {"\u0061":1,"b":2} {"length":"x"}
    [123] [-123] [-0] [0.0] [0e0] [0E+5] [1e2] [1e+2] [1E-0] [100e-2] [1.5e1] [0e99] [0.000e5] [-9007199254740991]
    "\u0000" "\"" "\\" "\/" "\b\f\n\r\t" "\\u0000" "a\tb" "\u0060\u012a\u12AB" "\uD801\udc37" "\uDBFF\uDFFF" "\uFFFF"
    "\ud83d\ude39\ud83d\udc8d" "\u0022" "\u005C" "€𝄞" "\uE000" "\ud7ff" "😀\ud83d\ude00" ["\ufeff"] "\\\\" "\\\""
    "{}[],:" "1e5" "\u00e9é" "a/*b*/c"
  `,
  ...[' null ', '\tnull', 'null\n', '\r\nnull\r\n', '[\t1\r\n]', '[ 1 , 2 ]', '[ ]', '{ }', '{\n"a"\n:\n1\n}', '" "'],
  ...['{"é":1,"e\u0301":2}', '"\u007f"', '"\u0080"', '"\u2028"', '"\u2029"', '"\u{10ffff}"', '"\ufffd"', '"x\ufeff"'],
];

/** JSON to nobody, and more than one character away from it. */
export const INVALID: string[] = [
  ...texts`
    [1,,2] {"a" {"a": {'a':1} {1:1} {["a":1]} {"a":"b"}/**/ {"a":1}// {"a":/*c*/1} {"a":,"b":1} ""x nul1 NULL True
    undefined NaN -NaN Infinity -Inf --1 -01 012 0x1f 0b1 1_000 1n 1.e1 1e1.5 1e+-2 0.1.2 1/2 'a' 1#1 1e٣ "\\\" "\ud83
  `,
  ...['', ' ', '[1 true]', '{"a":1 "b":2}', '1 000', '["\\'],
  // Everything in a string that must be escaped, and every escape there is not.
  ...Array.from({ length: 0x20 }, (_, code) => `"a${String.fromCharCode(code)}b"`),
  ...[..." !#$%&'()*+,-.0123456789:;<=>?@[]^_`acdeghijklmopqsvwxyz{|}~"].map((character) => `["\\${character}"]`),
];

/** JSON to many readers, refused here: what our message says, the text, and where (in bytes). */
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

/** No UTF-8: the bytes, and the offset of the first that is wrong. */
export const NOT_UTF8: Record<string, number> = {
  ...{ ff: 0, fffe5b005d00: 0, feff005b005d: 0, efbb: 0, '5be55d': 1, '5b31e55d': 2, '31c3': 1, '7b22b9223a317d': 2 },
  ...{ '228022': 1, '22e922': 1, '22c322': 1, '22c3a98022': 3, '22c08022': 1, '22c0af22': 1, '22c1bf22': 1 },
  ...{ '22e080af22': 1, '22f08080af22': 1, '22fc83bfbfbfbf22': 1, '22eda08022': 1, '22edbfbf22': 1 },
  ...{ '22f490808022': 1, '22f580808022': 1, '22efbf22': 1, '22efbfbdff22': 4, '22efbfbd61efbfbdefbf22': 8 },
  ...{ '225c75303030e522': 6, '225ce522': 2 },
};
