/**
 * `petstore doctor`: finds faults in the setup of the service. It takes the options of serve, and changes nothing.
 * A finding is `wrong` if a promise does not hold, and `note` if the setup may be intended; each gives advice.
 */
import { accessSync, constants, existsSync, lstatSync, readdirSync, realpathSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { refuseForeign, refuseOthers } from '../store/file/directory.ts';
import { realDisk } from '../store/file/disk.ts';
import { command } from './command.ts';
import { CommandError, EXIT, reasonOf } from './exit.ts';
import { json, SERVE_OPTIONS, type Values } from './options.ts';
import { counted, printBefore, table } from './output.ts';
import { isLoopback, softLimit } from './sockets.ts';

type Verdict = 'ok' | 'note' | 'wrong';
type Found = [verdict: Verdict, why: string];

/** A compaction writes the store anew beside itself, and so does a start after a crash. */
const ROOM_PER_BYTE = 2;
const MIN_ROOM_BYTES = 100_000_000;
/** 10,000 connections, and room for files. */
const WANTED_DESCRIPTORS = 16_384;
/** A clock that shows an earlier time than this program's own year is wrong. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
const MAX_AHEAD_MS = 60_000;
const OLDEST_MAINTAINED_NODE = 22;

const options = { ...SERVE_OPTIONS, json };
type Settings = Values<typeof options>;

/** The checks, in the order in which they are printed. An empty list of findings: the check does not apply here. */
const CHECKS: Record<string, (settings: Settings) => Found[] | Promise<Found[]>> = {
  'owner and modes': ({ data, store }) => (store === undefined ? [owner(data)] : []),
  'free disk': ({ data, store }) => (store === undefined ? [room(data)] : []),
  lock: ({ store }) => (store === undefined ? [lock()] : []),
  database: async ({ store }) => (store === undefined ? [] : connection(store)),
  clock: ({ data, store }) => [clock(store === undefined ? data : undefined)],
  proxies: (settings) => [proxies(settings)],
  TLS: (settings) => [encryption(settings)],
  metrics: ({ metrics }) => [figures(metrics?.host)],
  'core dumps': cores,
  descriptors,
  runtime: () => [runtime()],
};

export const DOCTOR = command({
  name: 'doctor',
  does: 'find faults in the set-up of the service; exit 1 if there are any',
  more: 'Give it the options or variables of serve, as the user who runs serve.',
  options,
  run: async (settings) => {
    const findings: { what: string; verdict: Verdict; why: string }[] = [];
    for (const [what, look] of Object.entries(CHECKS)) {
      const failed = (error: Error): Found[] => [['wrong', `this cannot be checked: ${error.message}`]];
      const found = await Promise.resolve(settings).then(look).catch(failed);
      for (const [verdict, why] of found) findings.push({ what, verdict, why });
    }
    const wrong = findings.filter(({ verdict }) => verdict === 'wrong').length;
    const failure = new CommandError(EXIT.failed, `${counted(wrong, 'thing is', 'things are')} wrong`);
    const text = settings.json ? JSON.stringify(findings, null, 2) : table(findings);
    await printBefore(wrong > 0 ? failure : undefined, text);
  },
});

function owner(dir: string): Found {
  const isLink = lstatSync(dir, { throwIfNoEntry: false })?.isSymbolicLink();
  const mount = whyReadOnly(existsSync(dir) ? dir : nearest(dir));
  if (!existsSync(dir)) {
    if (isLink) return ['wrong', `${dir} is a link that leads nowhere`];
    if (mount !== undefined) return ['wrong', mount];
    return ['ok', `${dir} is not there yet; serve makes it for its owner alone`];
  }
  try {
    refuseOthers(realDisk, dir);
    refuseForeign(realDisk, dir);
    if (mount !== undefined) return ['wrong', mount];
    const above = openAbove(dir);
    const ours = `${dir} belongs to this user, and nobody else can write there`;
    return above === undefined
      ? ['ok', ours]
      : ['note', `${ours}; but others can write in ${above}, and so move it away: chmod go-w, or name another place`];
  } catch (error) {
    return ['wrong', (error as Error).message];
  }
}

/** The reason why this user can write nothing in a directory; undefined: it can be written. */
function whyReadOnly(dir: string): string | undefined {
  try {
    accessSync(dir, constants.W_OK);
    return undefined;
  } catch (error) {
    return `${dir} cannot be written: ${reasonOf(error as Error)}`;
  }
}

/** The nearest directory above in which others can give other names; a sticky bit keeps those to their owners. */
function openAbove(dir: string): string | undefined {
  const above = path.dirname(realpathSync(dir));
  const { mode, uid } = statSync(above);
  const isOthers = uid !== 0 && uid !== process.geteuid?.();
  if (isOthers || ((mode & 0o022) !== 0 && (mode & 0o1000) === 0)) return above;
  return above === path.dirname(above) ? undefined : openAbove(above);
}

/** Free space for this user, compared with the size of the store. */
function room(dir: string): Found {
  const there = existsSync(dir) ? dir : nearest(dir);
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const used = there === dir ? filesIn(dir).reduce((sum, { size }) => sum + size, 0) : 0;
  const wanted = Math.max(MIN_ROOM_BYTES, ROOM_PER_BYTE * used);
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
  const why = `${megabytes(free)} are free where the store has ${megabytes(used)}`;
  return free < wanted ? ['wrong', `${why}; a compaction wants ${megabytes(wanted)}`] : ['ok', why];
}

function nearest(dir: string): string {
  const above = path.dirname(path.resolve(dir));
  return existsSync(above) ? above : nearest(above);
}

const filesIn = (dir: string) =>
  readdirSync(dir).flatMap((name) => statSync(path.join(dir, name), { throwIfNoEntry: false }) ?? []);

function lock(): Found {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  if (folders.some((folder) => existsSync(path.join(folder, 'flock')))) return ['ok', 'the flock program is there'];
  return ['wrong', 'there is no flock program (util-linux): a second server is kept away less surely'];
}

/** Loaded only where there is a database. */
async function connection(store: string): Promise<Found[]> {
  const { doubtsOf } = await import('../postgres/server.ts');
  const doubts = doubtsOf(store);
  if (doubts.length === 0) return [['ok', 'every host of --store is this machine, or must prove its identity']];
  return doubts.map((doubt) => ['wrong', doubt]);
}

function clock(dir: string | undefined): Found {
  const now = Date.now();
  const newest = dir && existsSync(dir) ? Math.max(0, ...filesIn(dir).map(({ mtimeMs }) => mtimeMs)) : 0;
  const at = new Date(now).toISOString();
  if (now < EARLIEST_MS) return ['wrong', `it says ${at}: set it, or wait for the time service`];
  if (newest > now + MAX_AHEAD_MS) return ['wrong', `it says ${at}, and the store was written after that`];
  return ['ok', `it says ${at}`];
}

function proxies({ host, trustProxy }: { host: string; trustProxy: number }): Found {
  if (trustProxy === 0) return ['ok', 'callers are counted by the address of their connection'];
  const trusted = `callers are counted by X-Forwarded-For, as ${counted(trustProxy, 'proxy', 'proxies')} in front wrote it`;
  if (isLoopback(host)) return ['ok', trusted];
  const past = `clients that reach ${host} directly can forge it: listen on 127.0.0.1, or let only proxies in`;
  return ['note', `${trusted}; ${past}`];
}

function encryption({ host, environment, baseUrl, stagingBaseUrl }: Settings): Found {
  if (isLoopback(host)) return ['ok', `only this machine reaches ${host}`];
  const [name, url] = environment === 'staging' ? ['--staging-base-url', stagingBaseUrl] : ['--base-url', baseUrl];
  if (url?.startsWith('https:')) return ['ok', `${name} says that a proxy with TLS is in front`];
  return ['note', `keys reach ${host} in clear: put a proxy with TLS in front, and name it by ${name} https://…`];
}

function figures(host: string | undefined): Found {
  if (host === undefined) return ['ok', 'none are served'];
  if (isLoopback(host)) return ['ok', 'only this machine reaches them'];
  return ['note', `anybody who reaches ${host} reads them: they are not for the public`];
}

/** The limits of this process; a service manager may set others for the server. */
function cores(): Found[] {
  const limit = softLimit('core file size');
  if (limit === undefined) return [];
  return limit === '0'
    ? [['ok', 'none is written']]
    : [['note', 'a dump of memory holds keys: ulimit -c 0, or LimitCORE=0 in the unit']];
}

function descriptors(): Found[] {
  const limit = softLimit('open files');
  if (limit === undefined) return [];
  return limit === 'unlimited' || Number(limit) >= WANTED_DESCRIPTORS
    ? [['ok', `${limit} may be open`]]
    : [['note', `${limit} may be open, fewer than 10,000 connections need: ulimit -n ${WANTED_DESCRIPTORS}`]];
}

function runtime(): Found {
  const isMaintained = Number(process.versions.node.split('.')[0]) >= OLDEST_MAINTAINED_NODE;
  if (isMaintained) return ['ok', `Node ${process.version} is maintained`];
  return ['note', `Node ${process.version} gets no security fixes any more: use a newer one, or the binary`];
}
