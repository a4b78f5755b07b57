/**
 * The exercises of docs/small/README.md: mends that `break.ts` must accept, and half mends that it must refuse. Each is a
 * list of edits of petstore.ts: a text that stands there once, and what replaces it.
 */
export type Edit = readonly [old: string, text: string];
export interface Exercise {
  /** The first is the answer whose lines the README counts. */
  readonly right: Record<string, readonly Edit[]>;
  readonly half: Record<string, readonly Edit[]>;
}

const FS = "import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';";
const importing = (...names: string[]): Edit => [FS, FS.replace(' }', `, ${names.join(', ')} }`)];

const AS_LINE = `\`\${JSON.stringify(change)}\\n\``;
const APPEND = `  appendFileSync(log, ${AS_LINE});`;

const READ = "const written = existsSync(log) ? readFileSync(log, 'utf8') : '';";
const READ_LINES = "for (const line of written.split('\\n').filter((text) => text !== '')) apply(JSON.parse(line));";

const CHANGE = 'type Change = { key?: Key; pet?: Pet; order?: Order };';
const APPLY = 'function apply({ key, pet, order }: Change): void {';
const APPLY_ORDER = '  if (order !== undefined) orders.set(order.id, order);';

const WINDOWS_SET = '  windows.set(caller, own);';
const WINDOWS_END = 'const left = ({ limit, used }: Window) => limit - used;';
/** The windows that changed are written by `writeWindows`. */
const windowsWritten = (applyOne: string): Edit[] => [
  [WINDOWS_SET, `${WINDOWS_SET}\n  changedCallers.add(caller);`], // first: the text comes twice after the next edits
  [CHANGE, CHANGE.replace(' }', '; windows?: [string, Window[]][] }')],
  [APPLY, APPLY.replace(' }', ', windows: changed = [] }')],
  [APPLY_ORDER, `${APPLY_ORDER}\n  for (const [caller, own] of changed) ${applyOne}`],
  [
    WINDOWS_END,
    `const changedCallers = new Set<string>();
function writeWindows(): void {
  if (changedCallers.size === 0) return;
  write({ windows: [...changedCallers].map((caller) => [caller, windows.get(caller)!]) });
  changedCallers.clear();
}

${WINDOWS_END}`,
  ],
];
const EVERY_SECOND: Edit = ['// The endpoints.', 'setInterval(writeWindows, 1_000).unref();\n\n// The endpoints.'];
const AT_SIGTERM: Edit = [
  '// Input. ',
  `process.on('SIGTERM', () => {
  writeWindows();
  process.exit();
});

// Input. `,
];
const WITH_ENDS = 'windows.set(caller, own);';

const CALL = 'type Call = { param: string; query: Record<string, unknown>; body: [string, unknown][] };';
const CREATE_PET = 'function createPet({ body }: Call): Reply {';
const PET_WRITTEN = `  write({ pet });
  return { status: 201, body: pet, headers: { Location: \`/v1/pets/\${pet.id}\` } };`;
const CREATE_ORDER = 'function createOrder({ body }: Call): Reply {';
const ORDER_WRITTEN = `  write({ order, pet: { ...pet, status: 'pending' } });
  return { status: 201, body: order, headers: { Location: \`/v1/store/orders/\${order.id}\` } };`;
const KEY = '    if (key instanceof Refusal) throw key;';
const HANDLED = '  const reply = handler({ param: route.path.exec(path)![1], query: parameters, body });';

/** The reply is kept as `once`, which is made of `digest`, `path` and `sent`. */
const replayed = (once: string): Edit[] => [
  [CHANGE, CHANGE.replace(' }', '; reply?: [string, Reply] }')],
  [APPLY, `const replies = new Map<string, Reply>();\n${APPLY.replace(' }', ', reply }')}`],
  [APPLY_ORDER, `${APPLY_ORDER}\n  if (reply !== undefined) replies.set(...reply);`],
  [CALL, CALL.replace(' }', '; once?: string }')],
  [CREATE_PET, CREATE_PET.replace(' }', ', once }')],
  [CREATE_ORDER, CREATE_ORDER.replace(' }', ', once }')],
  ['  if (/^\\/v1(\\/|$)/.test(path)) {', "  let digest = '';\n  if (/^\\/v1(\\/|$)/.test(path)) {"],
  [KEY, `${KEY}\n    digest = key.digest;`],
  [
    HANDLED,
    `  const sent = req.method === 'POST' ? req.headers['idempotency-key'] : undefined;
  const once = sent && ${once};
  const first = once && replies.get(once);
  const reply = first || ${HANDLED.slice('  const reply = '.length).replace('body }', 'body, once }')}`,
  ],
];
const replyKept = (writePet: string, writeOrder: string): Edit[] => [
  [
    PET_WRITTEN,
    `  const reply = { status: 201, body: pet, headers: { Location: \`/v1/pets/\${pet.id}\` } };
${writePet}
  return reply;`,
  ],
  [
    ORDER_WRITTEN,
    `  const reply = { status: 201, body: order, headers: { Location: \`/v1/store/orders/\${order.id}\` } };
${writeOrder}
  return reply;`,
  ],
];
const BY_ALL = 'JSON.stringify([digest, path, sent])';
const IN_ONE_LINE = replyKept(
  '  write({ pet, reply: once ? [once, reply] : undefined });',
  "  write({ order, pet: { ...pet, status: 'pending' }, reply: once ? [once, reply] : undefined });",
);
const PET_LINE = '  write({ pet });';
const ORDER_LINE = "  write({ order, pet: { ...pet, status: 'pending' } });";
const REPLY_LINE = '  if (once) write({ reply: [once, reply] });';

const INTEGER = 'fits: (value): value is number => Number.isInteger(value) };';
/** Long numbers are `BigInt`s: everywhere but where the log is read. */
const EXACT: Edit[] = [
  ['categoryId: number;', 'categoryId: number | bigint;'],
  [APPEND, APPEND.replace('JSON.stringify', 'toJson')],
  [
    '// Refusals. Each',
    `/** Stands before the digits of a long number, in a string. No client can know it. */
const MARK = randomUUID();
/** \`JSON.parse\` and \`JSON.stringify\`, but whole numbers of 16 digits or more are exact. */
function parseJson(text: string): unknown {
  const isLong = (token: string) => /^-?[1-9]\\d{15,}$/.test(token);
  const marked = text.replace(/"(\\\\.|[^"\\\\])*"|-?\\d[\\d.eE+-]*/gs, (token) => (isLong(token) ? \`"\${MARK}\${token}"\` : token));
  return JSON.parse(marked, (_, value) => {
    return typeof value === 'string' && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value;
  });
}
function toJson(value: unknown): string {
  const text = JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? MARK + one : one));
  return text.replace(new RegExp(\`"\${MARK}(-?\\\\d+)"\`, 'g'), '$1');
}

// Refusals. Each`,
  ],
  [
    `const INTEGER: Rule<number> = { right: 'a whole number', ${INTEGER}`,
    `const INTEGER: Rule<number | bigint> = {
  right: 'a whole number',
  fits: (value): value is number | bigint =>
    typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value),
};`,
  ],
  ['    body = JSON.parse(new TextDecoder', '    body = parseJson(new TextDecoder'],
  ['hash(JSON.stringify(reply))', 'hash(toJson(reply))'],
  ['  const text = JSON.stringify(body);', '  const text = toJson(body);'],
];

export const EXERCISES: Record<string, Exercise> = {
  power: {
    right: {
      'with flush': [[APPEND, APPEND.replace(');', ', { flush: true });')]],
      "with the flag 'as'": [[APPEND, APPEND.replace(');', ", { flag: 'as' });")]],
      'by a descriptor that stays open': [
        importing('fsyncSync', 'openSync', 'writeSync'),
        [APPEND, `  fd ??= openSync(log, 'a');\n  writeSync(fd, ${AS_LINE});\n  fsyncSync(fd);`],
        ['/** Writes the line first', 'let fd: number | undefined;\n/** Writes the line first'],
      ],
      'by a handle that is waited for': [
        [FS, `${FS}\nimport { open } from 'node:fs/promises';`],
        [
          '  const reply = handler({ param: route.path.exec(path)![1], query: parameters, body });',
          `  const reply = handler({ param: route.path.exec(path)![1], query: parameters, body });
  if (!isRead) {
    const handle = await open(log, 'r+');
    await handle.datasync();
    await handle.close();
  }`,
        ],
      ],
    },
    half: {
      'the sync comes before the write': [
        importing('fsyncSync', 'openSync'),
        [APPEND, `  fsyncSync(openSync(log, 'a'));\n${APPEND}`],
      ],
      'nothing waits for the sync': [
        importing('fsync', 'openSync'),
        [APPEND, `${APPEND}\n  fsync(openSync(log, 'a'), () => {});`],
      ],
      "nothing waits for a handle's sync": [
        [FS, `${FS}\nimport { open } from 'node:fs/promises';`],
        [APPEND, `${APPEND}\n  open(log, 'a').then((handle) => handle.sync());`],
      ],
      'another file is synced': [
        importing('fsyncSync', 'openSync'),
        [APPEND, `${APPEND}\n  fsyncSync(openSync(data, 'r'));`],
      ],
    },
  },

  'torn-line': {
    right: {
      'the torn line is cut off': [
        importing('truncateSync'),
        [
          READ,
          `const bytes = existsSync(log) ? readFileSync(log) : Buffer.alloc(0);
const end = bytes.lastIndexOf('\\n') + 1;
if (end < bytes.length) truncateSync(log, end);
const written = bytes.toString('utf8', 0, end);`,
        ],
      ],
      'a last line that lacks its line feed alone gets it': [
        importing('writeFileSync'),
        [READ, READ.replace('const', 'let')],
        [
          READ_LINES,
          `const last = written.slice(written.lastIndexOf('\\n') + 1);
if (last !== '') {
  try {
    JSON.parse(last);
    written += '\\n';
  } catch {
    written = written.slice(0, -last.length);
  }
  writeFileSync(log, written);
}
${READ_LINES}`,
        ],
      ],
    },
    half: {
      'every bad line is skipped': [
        importing('writeFileSync'),
        [
          READ_LINES,
          `const isGood = (line: string) => {
  try {
    apply(JSON.parse(line));
    return true;
  } catch {
    return false;
  }
};
writeFileSync(log, written.split('\\n').filter(isGood).map((line) => \`\${line}\\n\`).join(''));`,
        ],
      ],
      'the file is cut at the first bad line': [
        importing('writeFileSync'),
        [
          READ_LINES,
          `let good = '';
for (const line of written.split('\\n').filter((text) => text !== '')) {
  try {
    apply(JSON.parse(line));
  } catch {
    break;
  }
  good += \`\${line}\\n\`;
}
writeFileSync(log, good);`,
        ],
      ],
      'the torn line stays in the file': [
        [
          READ_LINES,
          READ_LINES.replace("written.split('\\n')", "written.slice(0, written.lastIndexOf('\\n') + 1).split('\\n')"),
        ],
      ],
      'what can be read stays without its line feed': [
        importing('writeFileSync'),
        [
          READ_LINES,
          `const lines = written.split('\\n').filter((text) => text !== '');
for (const line of lines) {
  try {
    apply(JSON.parse(line));
  } catch (error) {
    if (line !== lines.at(-1)) throw error;
    writeFileSync(log, written.slice(0, -line.length));
  }
}`,
        ],
      ],
    },
  },

  'restart-limits': {
    right: { 'once a second and at SIGTERM': [...windowsWritten(WITH_ENDS), EVERY_SECOND, AT_SIGTERM] },
    half: {
      'only at SIGTERM': [...windowsWritten(WITH_ENDS), AT_SIGTERM],
      'only once a second': [...windowsWritten(WITH_ENDS), EVERY_SECOND],
      'the windows begin anew': [
        ...windowsWritten(`{
    for (const one of own) one.endsAt = Date.now() + one.seconds * 1000;
    windows.set(caller, own);
  }`),
        EVERY_SECOND,
        AT_SIGTERM,
      ],
    },
  },

  'repeated-post': {
    right: { 'in the line of the change': [...replayed(BY_ALL), ...IN_ONE_LINE] },
    half: {
      'the reply has a line of its own, after the change': [
        ...replayed(BY_ALL),
        ...replyKept(`${PET_LINE}\n${REPLY_LINE}`, `${ORDER_LINE}\n${REPLY_LINE}`),
      ],
      'the reply has a line of its own, before the change': [
        ...replayed(BY_ALL),
        ...replyKept(`${REPLY_LINE}\n${PET_LINE}`, `${REPLY_LINE}\n${ORDER_LINE}`),
      ],
      'the header alone is the key': [...replayed('String(sent)'), ...IN_ONE_LINE],
      'the path is not in the key': [...replayed('JSON.stringify([digest, sent])'), ...IN_ONE_LINE],
      'the caller is not in the key': [...replayed('JSON.stringify([path, sent])'), ...IN_ONE_LINE],
      'replies are only in memory': [
        ...replayed(BY_ALL),
        ...replyKept(
          `${PET_LINE}\n  if (once) replies.set(once, reply);`,
          `${ORDER_LINE}\n  if (once) replies.set(once, reply);`,
        ),
      ],
    },
  },

  int64: {
    right: {
      'in bodies, replies and the log': [
        ...EXACT,
        [READ_LINES, READ_LINES.replace('apply(JSON.parse(line))', 'apply(parseJson(line) as Change)')],
      ],
    },
    half: { 'the log is read by JSON.parse alone': EXACT },
  },
};

/** The small edition with these edits. */
export function mended(small: string, edits: readonly Edit[]): string {
  return edits.reduce((text, [old, next]) => {
    if (text.split(old).length !== 2) throw new Error(`petstore.ts must have this once: ${old}`);
    return text.replace(old, () => next);
  }, small);
}

/** The lines of a mend that the small edition has not. */
export function linesOf(edits: readonly Edit[]): number {
  const added = ([old, text]: Edit) =>
    text.split('\n').filter((line) => line !== '' && !old.split('\n').includes(line));
  return edits.flatMap(added).length;
}
