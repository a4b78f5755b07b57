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

const IN_NEW_FILE = `  const before = existsSync(log) ? readFileSync(log, 'utf8') : '';
  writeFileSync(\`\${log}.new\`, before + ${AS_LINE}, { flush: true });
  renameSync(\`\${log}.new\`, log);`;

const READ = "const written = existsSync(log) ? readFileSync(log, 'utf8') : '';";
const READ_LINES = "for (const line of written.split('\\n').filter((text) => text !== '')) apply(JSON.parse(line));";

const CHANGE = 'type Change = { key?: Key; pet?: Pet; order?: Order };';
const APPLY = 'function apply({ key, pet, order }: Change): void {';
const APPLY_ORDER = '  if (order !== undefined) orders.set(order.id, order);';

const WINDOWS_SET = '  windows.set(caller, own);';
const ADDED = '  changedCallers.add(caller);';
const WINDOWS_END = 'const left = ({ limit, used }: Window) => limit - used;';
/** The windows that changed are written by `writeWindows`. */
const windowsWritten = (applyOne: string): Edit[] => [
  [WINDOWS_SET, `${WINDOWS_SET}\n${ADDED}`], // first: the text comes twice after the next edits
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
const HANDLED = '  return handler({ param: route.path.exec(path)![1], query: parameters, body });';

/** Edits with other texts: each of `others` stands in one of them. */
function edited(others: readonly Edit[], edits: readonly Edit[]): Edit[] {
  return others.reduce<Edit[]>(
    (all, [from, to]) => {
      if (!all.some(([, text]) => text.includes(from))) throw new Error(`no edit has this: ${from}`);
      return all.map(([old, text]) => [old, text.replace(from, () => to)]);
    },
    [...edits],
  );
}
/** The reply is kept as `once`, which is made of `digest`, `path` and `sent`. */
const replayed = (once: string, others: readonly Edit[] = []): Edit[] =>
  edited(others, [
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
  return first || ${HANDLED.slice('  return '.length).replace('body }', 'body, once }')}`,
    ],
  ]);
/** In the line `once` alone: its animal or its order is the body of the reply. */
const REPLY_OF_LINE: Edit[] = [
  ['reply?: [string, Reply]', 'once?: string'],
  [', reply }', ', once }'],
  [
    'if (reply !== undefined) replies.set(...reply);',
    `if (once === undefined) return;
  const Location = order === undefined ? \`/v1/pets/\${pet!.id}\` : \`/v1/store/orders/\${order.id}\`;
  replies.set(once, { status: 201, body: order ?? pet, headers: { Location } });`,
  ],
];
const LAST_OF_CALLER: Edit[] = [
  [
    'if (reply !== undefined) replies.set(...reply);',
    `if (reply === undefined) return;
  const [digest, path] = JSON.parse(reply[0]);
  for (const name of replies.keys()) if (name.startsWith(JSON.stringify([digest, path]).slice(0, -1))) replies.delete(name);
  replies.set(...reply);`,
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
  ['  const text = JSON.stringify(body);', '  const text = toJson(body);'],
];

const READ_EXACTLY: Edit = [
  READ_LINES,
  READ_LINES.replace('apply(JSON.parse(line))', 'apply(parseJson(line) as Change)'),
];
const TOKENS = '/"(\\\\.|[^"\\\\])*"|-?\\d[\\d.eE+-]*/gs';
const exactBut = (...others: Edit[]): Edit[] => [...edited(others, EXACT), READ_EXACTLY];

export const EXERCISES: Record<string, Exercise> = {
  power: {
    right: {
      'with flush': [[APPEND, APPEND.replace(');', ', { flush: true });')]],
      'by a descriptor that stays open': [
        importing('fsyncSync', 'openSync', 'writeSync'),
        [APPEND, `  fd ??= openSync(log, 'a');\n  writeSync(fd, ${AS_LINE});\n  fsyncSync(fd);`],
        ['/** Writes the line first', 'let fd: number | undefined;\n/** Writes the line first'],
      ],
      'by a descriptor with O_DSYNC, appended to': [
        importing('constants', 'openSync'),
        [
          APPEND,
          `  fd ??= openSync(log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_DSYNC);\n  appendFileSync(fd, ${AS_LINE});`,
        ],
        ['/** Writes the line first', 'let fd: number | undefined;\n/** Writes the line first'],
      ],
      'by writeFileSync with a flag': [
        importing('writeFileSync'),
        [APPEND, `  writeFileSync(log, ${AS_LINE}, { flag: 'as' });`],
      ],
      'by fdatasyncSync after the write': [
        importing('closeSync', 'fdatasyncSync', 'openSync'),
        [APPEND, `${APPEND}\n  const fd = openSync(log, 'r+');\n  fdatasyncSync(fd);\n  closeSync(fd);`],
      ],
      'what the disk refused is cut off again': [
        importing('closeSync', 'fstatSync', 'fsyncSync', 'ftruncateSync', 'openSync', 'writeSync'),
        [
          APPEND,
          `  const fd = openSync(log, 'a');
  const { size } = fstatSync(fd);
  try {
    writeSync(fd, ${AS_LINE});
    fsyncSync(fd);
  } catch (error) {
    ftruncateSync(fd, size);
    throw error;
  } finally {
    closeSync(fd);
  }`,
        ],
      ],
      'a new file that is renamed, and its directory synced': [
        importing('closeSync', 'fsyncSync', 'openSync', 'renameSync', 'writeFileSync'),
        [APPEND, `${IN_NEW_FILE}\n  const fd = openSync(data, 'r');\n  fsyncSync(fd);\n  closeSync(fd);`],
      ],
    },
    half: {
      'the sync comes before the write': [
        importing('fsyncSync', 'openSync'),
        [APPEND, `  fsyncSync(openSync(log, 'a'));\n${APPEND}`],
      ],
      "nothing waits for a handle's sync": [
        [FS, `${FS}\nimport { open } from 'node:fs/promises';`],
        [APPEND, `${APPEND}\n  open(log, 'a').then((handle) => handle.sync());`],
      ],
      'a sync that fails is ignored': [
        importing('fsyncSync', 'openSync'),
        [APPEND, `${APPEND}\n  try {\n    fsyncSync(openSync(log, 'a'));\n  } catch {}`],
      ],
      'only the first line is synced': [
        importing('fsyncSync', 'openSync'),
        [APPEND, `${APPEND}\n  if (pets.size === 0) fsyncSync(openSync(log, 'a'));`],
      ],
      'the key is not synced': [[APPEND, APPEND.replace(');', ', { flush: change.key === undefined });')]],
      'an animal that the disk refused is taken back, an order is not': [
        [
          `${APPEND}\n  apply(change);`,
          `  apply(change);
  try {
    appendFileSync(log, ${AS_LINE}, { flush: true });
  } catch (error) {
    if (change.order === undefined) pets.delete(change.pet!.id);
    throw error;
  }`,
        ],
      ],
      'a cancelled order is not synced': [
        [APPEND, APPEND.replace(');', ", { flush: change.order?.status !== 'cancelled' });")],
      ],
      'the log is written anew in place': [
        importing('writeFileSync'),
        [
          APPEND,
          `  const before = existsSync(log) ? readFileSync(log, 'utf8') : '';\n  writeFileSync(log, before + ${AS_LINE}, { flush: true });`,
        ],
      ],
      'a new file is renamed, and no directory synced': [
        importing('renameSync', 'writeFileSync'),
        [APPEND, IN_NEW_FILE],
      ],
      'a descriptor with O_SYNC that is not written by': [
        importing('constants', 'openSync'),
        [APPEND, `  openSync(log, constants.O_WRONLY | constants.O_SYNC | constants.O_CREAT);\n${APPEND}`],
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
      'in a new file that is renamed': [
        importing('renameSync', 'writeFileSync'),
        [READ, READ.replace('const written', 'const found')],
        [
          READ_LINES,
          `const written = found.slice(0, found.lastIndexOf('\\n') + 1);
if (written !== found) {
  writeFileSync(\`\${log}.new\`, written, { flush: true });
  renameSync(\`\${log}.new\`, log);
}
${READ_LINES}`,
        ],
      ],
      'a last line that lacks its line feed alone gets it': [
        importing('truncateSync'),
        [READ, READ.replace('const', 'let')],
        [
          READ_LINES,
          `const last = written.slice(written.lastIndexOf('\\n') + 1);
if (last !== '') {
  try {
    JSON.parse(last);
    appendFileSync(log, '\\n');
  } catch {
    written = written.slice(0, -last.length);
    truncateSync(log, Buffer.byteLength(written));
  }
}
${READ_LINES}`,
        ],
      ],
    },
    half: {
      'in a new file that is renamed and was not synced': [
        importing('renameSync', 'writeFileSync'),
        [READ, READ.replace('const written', 'const found')],
        [
          READ_LINES,
          `const written = found.slice(0, found.lastIndexOf('\\n') + 1);
if (written !== found) {
  writeFileSync(\`\${log}.new\`, written);
  renameSync(\`\${log}.new\`, log);
}
${READ_LINES}`,
        ],
      ],
      'a torn first line stays': [
        importing('truncateSync'),
        [
          READ,
          `const bytes = existsSync(log) ? readFileSync(log) : Buffer.alloc(0);
const end = bytes.lastIndexOf('\\n') + 1;
if (end > 0) truncateSync(log, end);
const written = bytes.toString('utf8', 0, end);`,
        ],
      ],
      'the log is written anew in place': [
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
      'what ends with a brace counts as whole': [
        importing('truncateSync'),
        [
          READ_LINES,
          `const last = written.slice(written.lastIndexOf('\\n') + 1);
const whole = last === '' || last.endsWith('}') ? written : written.slice(0, -last.length);
if (whole !== written) truncateSync(log, Buffer.byteLength(whole));
else if (last !== '') appendFileSync(log, '\\n');
${READ_LINES.replace('written', 'whole')}`,
        ],
      ],
      'the file is cut by characters, not by bytes': [
        importing('truncateSync'),
        [READ, READ.replace('const written', 'const found')],
        [
          READ_LINES,
          `const written = found.slice(0, found.lastIndexOf('\\n') + 1);
if (written !== found) truncateSync(log, written.length);
${READ_LINES}`,
        ],
      ],
      'the line feed before the torn line is cut too': [
        importing('truncateSync'),
        [
          READ,
          `const bytes = existsSync(log) ? readFileSync(log) : Buffer.alloc(0);
if (bytes.length > 0 && bytes.at(-1) !== 10) truncateSync(log, Math.max(0, bytes.lastIndexOf('\\n')));
const written = bytes.toString('utf8', 0, bytes.lastIndexOf('\\n') + 1);`,
        ],
      ],
      'a bad last line is dropped, with a line feed too': [
        importing('truncateSync'),
        [READ, READ.replace('const', 'let')],
        [
          READ_LINES,
          `const last = written.trimEnd().slice(written.trimEnd().lastIndexOf('\\n') + 1);
try {
  if (last !== '') JSON.parse(last);
  if (!written.endsWith('\\n') && last !== '') appendFileSync(log, '\\n');
} catch {
  written = written.slice(0, written.lastIndexOf(last));
  truncateSync(log, Buffer.byteLength(written));
}
${READ_LINES}`,
        ],
      ],
      'a line feed is added, and bad lines are refused': [
        [READ_LINES, `if (written !== '' && !written.endsWith('\\n')) appendFileSync(log, '\\n');\n${READ_LINES}`],
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
    right: {
      'once a second and at SIGTERM': [...windowsWritten(WITH_ENDS), EVERY_SECOND, AT_SIGTERM],
      'with every request': [
        ...windowsWritten(WITH_ENDS),
        ['    const limited = take(own);', '    const limited = take(own);\n    writeWindows();'],
      ],
    },
    half: {
      'a second after the last of many requests': [
        ...windowsWritten(WITH_ENDS),
        ['    const limited = take(own);', '    const limited = take(own);\n    writeSoon();'],
        [
          EVERY_SECOND[0],
          `let timer: NodeJS.Timeout | undefined;
function writeSoon(): void {
  clearTimeout(timer);
  timer = setTimeout(writeWindows, 900);
}

// The endpoints.`,
        ],
        AT_SIGTERM,
      ],
      'until a second without a request': [
        ...windowsWritten(WITH_ENDS),
        [
          EVERY_SECOND[0],
          `const timer = setInterval(() => (changedCallers.size > 0 ? writeWindows() : clearInterval(timer)), 1_000).unref();

// The endpoints.`,
        ],
        AT_SIGTERM,
      ],
      'the process does not end at SIGTERM': [
        ...windowsWritten(WITH_ENDS),
        EVERY_SECOND,
        [AT_SIGTERM[0], AT_SIGTERM[1].replace('  process.exit();\n', '')],
      ],
      'of the callers only the last': [
        ...edited([[ADDED, `  changedCallers.clear();\n${ADDED}`]], windowsWritten(WITH_ENDS)),
        EVERY_SECOND,
        AT_SIGTERM,
      ],
      'only the day': [
        ...windowsWritten('windows.set(caller, [{ ...own[0], used: 0 }, ...own.slice(1)]);'),
        EVERY_SECOND,
        AT_SIGTERM,
      ],
      'the ends are for ever': [
        ...windowsWritten(`{
    for (const one of own) one.endsAt = Math.max(one.endsAt, Date.now() + 1e9);
    windows.set(caller, own);
  }`),
        EVERY_SECOND,
        AT_SIGTERM,
      ],
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
    right: {
      'in the line of the change': [...replayed(BY_ALL), ...IN_ONE_LINE],
      'the line has the name alone, and the reply is made of it': [
        ...replayed(BY_ALL, REPLY_OF_LINE),
        ...replyKept('  write({ pet, once });', "  write({ order, pet: { ...pet, status: 'pending' }, once });"),
      ],
    },
    half: {
      'the body is part of the key': [...replayed('JSON.stringify([digest, path, sent, body])'), ...IN_ONE_LINE],
      'only animals': [
        ...replayed(BY_ALL),
        ...replyKept('  write({ pet, reply: once ? [once, reply] : undefined });', ORDER_LINE),
      ],
      'only the last reply of a caller': [...replayed(BY_ALL, LAST_OF_CALLER), ...IN_ONE_LINE],
      'the reply has the animal as it is by now': [
        ...replayed(BY_ALL, [['replies.get(once)', 'asNow(replies.get(once))']]),
        ...IN_ONE_LINE,
        [
          'const SUCCESSOR',
          `function asNow(reply?: Reply): Reply | undefined {
  const { id, petId } = (reply?.body ?? {}) as Partial<Order>;
  return reply && { ...reply, body: petId === undefined ? pets.get(id!) : orders.get(id!) };
}
const SUCCESSOR`,
        ],
      ],
      'no header counts as a key': [
        ...replayed(BY_ALL, [
          ["req.headers['idempotency-key'] : undefined", "String(req.headers['idempotency-key']) : undefined"],
        ]),
        ...IN_ONE_LINE,
      ],
      'a plain object has the replies': [
        ...replayed(BY_ALL, [
          ['const replies = new Map<string, Reply>();', 'const replies: Record<string, Record<string, Reply>> = {};'],
          [
            'replies.set(...reply)',
            '(replies[JSON.parse(reply[0]).slice(0, 2).join()] ??= {})[JSON.parse(reply[0])[2]] = reply[1]',
          ],
          ['replies.get(once)', '(replies[[digest, path].join()] ?? {})[String(sent)]'],
        ]),
        ...IN_ONE_LINE,
      ],
      'every method has replies': [
        ...replayed(BY_ALL, [
          ["req.method === 'POST' ? req.headers['idempotency-key'] : undefined", "req.headers['idempotency-key']"],
          ['JSON.stringify([digest, path, sent])', "JSON.stringify([digest, path.replace(/\\/\\d+$/, ''), sent])"],
        ]),
        ...IN_ONE_LINE,
      ],
      'the reply is looked for before the body has come': [
        ...replayed(BY_ALL, [['  const first = once && replies.get(once);\n', '']]),
        ...IN_ONE_LINE,
        [
          '  const body = isRead ? [] : await readBody(req);',
          `  const first = replies.get(JSON.stringify([digest, path, req.headers['idempotency-key']]));
  const body = isRead ? [] : await readBody(req);`,
        ],
      ],
      'the reply has a line of its own, after the change': [
        ...replayed(BY_ALL),
        ...replyKept(`${PET_LINE}\n${REPLY_LINE}`, `${ORDER_LINE}\n${REPLY_LINE}`),
      ],
      'the reply has a line of its own, before the change': [
        ...replayed(BY_ALL),
        ...replyKept(`${REPLY_LINE}\n${PET_LINE}`, `${REPLY_LINE}\n${ORDER_LINE}`),
      ],
      'capital letters do not count': [
        ...replayed('JSON.stringify([digest, path, sent]).toLowerCase()'),
        ...IN_ONE_LINE,
      ],
      'the beginning of the header alone counts': [
        ...replayed('JSON.stringify([digest, path, String(sent).slice(0, 36)])'),
        ...IN_ONE_LINE,
      ],
      'ten replies': [
        ...replayed(BY_ALL, [
          [
            'replies.set(...reply);',
            'replies.size >= 10 && replies.delete([...replies.keys()][0]), replies.set(...reply);',
          ],
        ]),
        ...IN_ONE_LINE,
      ],
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
      'in bodies, replies and the log': [...EXACT, READ_EXACTLY],
      'a mark that no name may have': [
        ...exactBut(['const MARK = randomUUID();', "const MARK = '\\x7f';"]),
        ['/\\P{White_Space}/u.test(value) &&', "/\\P{White_Space}/u.test(value) && !value.includes('\\x7f') &&"],
      ],
    },
    half: {
      'the log is read by JSON.parse alone': EXACT,
      'a mark that a client can send': exactBut(['const MARK = randomUUID();', "const MARK = 'int64:';"]),
      'a mark of one character that no keyboard has': exactBut([
        'const MARK = randomUUID();',
        "const MARK = '\\u{e000}';",
      ]),
      'digits in strings are marked too': exactBut([TOKENS, '/-?\\d[\\d.eE+-]*/gs']),
      'what follows a colon is a number': exactBut([TOKENS, '/(?<=:\\s*)-?\\d[\\d.eE+-]*/gs']),
      'strings end at the first quotation mark': exactBut([TOKENS, '/"[^"]*"|-?\\d[\\d.eE+-]*/gs']),
      'a quotation mark after a backslash never ends a string': exactBut([
        TOKENS,
        '/"(\\\\"|[^"])*"|-?\\d[\\d.eE+-]*/gs',
      ]),
      'negative numbers are rounded': exactBut(['/^-?[1-9]\\d{15,}$/', '/^[1-9]\\d{15,}$/']),
      'numbers of 19 digits alone': exactBut(['/^-?[1-9]\\d{15,}$/', '/^-?[1-9]\\d{18,}$/']),
      'every whole number is a BigInt': exactBut(['/^-?[1-9]\\d{15,}$/', '/^-?\\d+$/']),
      'integers of any length': exactBut(['BigInt.asIntN(64, value) === value', 'true']),
      'only positive ones have 64 bits': exactBut([
        'BigInt.asIntN(64, value) === value',
        'value > -(2n ** 63n) && value < 2n ** 63n',
      ]),
      'one too many': exactBut(['BigInt.asIntN(64, value) === value', 'value >= -(2n ** 63n) && value <= 2n ** 63n']),
      'the name of the member must stand there': [
        ...exactBut([TOKENS, `/(?<="categoryId"\\s*:\\s*)-?\\d[\\d.eE+-]*|"(\\\\.|[^"\\\\])*"/gs`]),
      ],
      '9007199254740993.0 is rounded': exactBut(['Number.isSafeInteger(value)', 'Number.isInteger(value)']),
      'replies have them as strings': exactBut([", '$1');", ', \'"$1"\');']),
    },
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
