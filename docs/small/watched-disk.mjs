/**
 * Loaded before a program by the checker: a disk that tells what is durable. The directory `RECORD` has a file for each
 * file that was synced, named by its inode, with the bytes that a power failure would leave of it. A file
 * `rewritten NAME` appears there if the program empties the file NAME that has whole lines, cuts one that is durable,
 * moves it away, or puts one in its place that was not synced. Every sync takes a while, so that nobody finishes one by
 * chance between a reply and its arrival. With the first SIGWINCH syncs fail, with the second writes do too.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const { O_SYNC, O_DSYNC = 0, O_TRUNC } = fs.constants;
const BLOCKING_MS = 60;
const WAITED_FOR_MS = 300;
const real = { ...fs };
const record = (name) => join(process.env.RECORD, name);

let failing = 0;
process.on('SIGWINCH', () => {
  failing++;
  process.stderr.write(`FAILING ${failing}\n`);
});
const mustNot = (kind, isFailing) => {
  if (isFailing) throw Object.assign(new Error(`EIO: the disk refused to ${kind}`), { code: 'EIO' });
};

/** True while a call of ours is under way: Node's own calls inside it are no calls of the program. */
let isInside = false;
const opened = new Map();
/** Renamed since the last sync of their directory, with what was durable of them. */
const unsure = [];
const isSynced = (flag) => (typeof flag === 'number' ? (flag & (O_SYNC | O_DSYNC)) !== 0 : /s/.test(flag ?? ''));
const empties = (flag) => (typeof flag === 'number' ? (flag & O_TRUNC) !== 0 : /^w/.test(flag ?? ''));
const contentOf = (path) => {
  const isFile = path !== undefined && real.statSync(path, { throwIfNoEntry: false })?.isFile();
  return isFile ? real.readFileSync(path) : Buffer.alloc(0);
};
function keepsWholeLines(path, length) {
  if (contentOf(path).lastIndexOf('\n') < length) return;
  const durable = real.statSync(record(String(real.statSync(path).ino)), { throwIfNoEntry: false });
  if (durable !== undefined && durable.size <= length) return; // nobody was told that the rest is there
  real.writeFileSync(record(`rewritten ${basename(String(path))}`), '');
}
/** What a power failure would leave of the file with this name. */
function durableAt(path) {
  const stat = real.statSync(path, { throwIfNoEntry: false });
  const recorded = stat && record(String(stat.ino));
  return recorded && real.existsSync(recorded) ? real.readFileSync(recorded) : Buffer.alloc(0);
}
function makeDurable(path, content) {
  const stat = real.statSync(path, { throwIfNoEntry: false });
  if (stat?.isFile()) keep(record(String(stat.ino)), content);
}
/** At once, as the checker may read it at any time. */
function keep(recorded, content) {
  real.writeFileSync(`${recorded}.new`, content);
  real.renameSync(`${recorded}.new`, recorded);
}

/** What each call means: `sync` if it makes a file durable, `before` it, and `after` it with its result. */
const MEANINGS = {
  open(path, flag) {
    if (empties(flag)) keepsWholeLines(path, 0);
    const after = (fd) => opened.set(typeof fd === 'number' ? fd : fd.fd, { path, isSynced: isSynced(flag) });
    return { after };
  },
  writeFile(file, _, options) {
    const flag = options?.flag ?? 'w';
    const known = typeof file === 'number' ? opened.get(file) : { path: file, isSynced: isSynced(flag) };
    if (typeof file !== 'number' && empties(flag)) keepsWholeLines(file, 0);
    return written(known, options?.flush === true);
  },
  appendFile: (file, data, options) =>
    MEANINGS.writeFile(file, data, { flag: 'a', ...(typeof options === 'object' && options) }),
  write: (fd) => written(opened.get(fd), false),
  truncate(file, length) {
    const path = typeof file === 'number' ? opened.get(file)?.path : file;
    keepsWholeLines(path, length ?? 0);
    return {};
  },
  unlink(path) {
    keepsWholeLines(path, 0);
    return {};
  },
  /** A crash may undo it until the directory is synced: what was durable at this name is left then. */
  rename(from, to) {
    const before = durableAt(to);
    keepsWholeLines(from, 0);
    if (!real.existsSync(record(String(real.statSync(from).ino)))) keepsWholeLines(to, 0);
    const after = () => {
      for (const known of opened.values()) if (known.path === from) known.path = to;
      const recorded = record(String(real.statSync(to).ino));
      if (!real.existsSync(recorded)) return;
      unsure.push({ directory: resolve(dirname(to)), recorded, bytes: real.readFileSync(recorded) });
      keep(recorded, before);
    };
    return { after };
  },
  sync(fd) {
    const path = opened.get(fd)?.path;
    const ofDirectory = unsure.filter(({ directory }) => path !== undefined && directory === resolve(path));
    if (ofDirectory.length > 0) {
      const after = () => {
        for (const { recorded, bytes } of ofDirectory) keep(recorded, bytes);
      };
      return { sync: true, after };
    }
    const content = contentOf(path);
    const before = () => mustNot('sync', failing > 0);
    return { sync: true, before, after: () => path !== undefined && makeDurable(path, content) };
  },
};
function written(known, isFlushed) {
  if (known === undefined) return {}; // standard output, for one
  const sync = known.isSynced || isFlushed;
  const before = () => mustNot('write', failing > 1 || (sync && failing > 0));
  return { sync, before, after: () => sync && makeDurable(known.path, contentOf(known.path)) };
}

const blocking =
  (call, meaning) =>
  (...args) => {
    if (isInside) return call(...args);
    isInside = true;
    try {
      const { sync, before, after } = meaning(...args);
      if (sync) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKING_MS);
      before?.();
      const result = call(...args);
      after?.(result);
      return result;
    } finally {
      isInside = false;
    }
  };
const waitedFor = (call, meaning) =>
  async function (...args) {
    const { sync, before, after } = meaning.apply(this, args);
    if (sync) await wait(WAITED_FOR_MS);
    before?.();
    const result = await call.apply(this, args);
    after?.(result);
    return result;
  };
const withCallback = (call, meaning) => {
  const promised = (...args) =>
    new Promise((resolve, reject) => call(...args, (error, ...values) => (error ? reject(error) : resolve(values))));
  const wrapped = waitedFor(promised, (...args) => {
    const { after, ...rest } = meaning(...args);
    return { ...rest, after: (values) => after?.(values[0]) };
  });
  return (...args) => {
    const done = args.pop();
    wrapped(...args).then((values) => done(null, ...values), done);
  };
};

const CALLS = {
  open: ['open'],
  writeFile: ['writeFile'],
  appendFile: ['appendFile'],
  write: ['write', 'writev'],
  truncate: ['truncate', 'ftruncate'],
  unlink: ['unlink', 'rm'],
  rename: ['rename'],
  sync: ['fsync', 'fdatasync'],
};
const handle = await fs.promises.open(process.execPath);
const handles = Object.getPrototypeOf(handle);
await handle.close();
for (const [kind, names] of Object.entries(CALLS)) {
  const meaning = MEANINGS[kind];
  for (const name of names) {
    fs[`${name}Sync`] = blocking(real[`${name}Sync`], meaning);
    fs[name] = withCallback(real[name], meaning);
    if (fs.promises[name] !== undefined) fs.promises[name] = waitedFor(fs.promises[name], meaning);
  }
}
const OF_HANDLES = { write: 'write', writev: 'write', truncate: 'truncate', sync: 'sync', datasync: 'sync' };
for (const [name, kind] of Object.entries({ ...OF_HANDLES, writeFile: 'writeFile', appendFile: 'appendFile' })) {
  handles[name] = waitedFor(handles[name], function (...args) {
    return MEANINGS[kind](this.fd, ...args);
  });
}
syncBuiltinESMExports();
