/**
 * `petstore doctor`: what is wrong with how the service is set up. It takes what serve takes, looks, and changes nothing.
 * A finding is `wrong` where a promise does not hold, and `note` where it may be meant so; it says what to do.
 */
import { existsSync, readdirSync, readFileSync, realpathSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import { refuseOthers } from '../store/file/directory.ts';
import { realDisk } from '../store/file/disk.ts';
import { command } from './command.ts';
import { CommandError, EXIT } from './exit.ts';
import { json, SERVE_OPTIONS } from './options.ts';
import { counted, print, table } from './output.ts';
import { isLoopback } from './sockets.ts';

interface Finding {
  what: string;
  verdict: 'ok' | 'note' | 'wrong';
  why: string;
}

/** A compaction writes the store anew beside itself, and so does a start after a crash. */
const ROOM_PER_BYTE = 2;
const MIN_ROOM_BYTES = 100_000_000;
/** 10,000 connections, and room for files. */
const WANTED_DESCRIPTORS = 16_384;
/** No clock that is right stands before this program was written. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
const MAX_AHEAD_MS = 60_000;
const OLDEST_MAINTAINED_NODE = 22;

const { host, data, store, trustProxy, metrics, baseUrl } = SERVE_OPTIONS;
const options = { host, data, store, trustProxy, metrics, baseUrl, json };

export const DOCTOR = command({
  name: 'doctor',
  does: 'tell what is wrong with how this is set up; exit 1 if anything is',
  more: 'Give it the options or variables of serve, as the user who runs serve.',
  options,
  run: async (settings) => {
    const { data, store } = settings;
    const findings: Finding[] = [
      ...(store === undefined ? [owner(data), room(data), lock()] : await connection(store)),
      clock(store === undefined ? data : undefined),
      proxy(settings),
      encryption(settings),
      figures(settings.metrics?.host),
      ...processLimits(),
      runtime(),
    ];
    await print(settings.json ? JSON.stringify(findings, null, 2) : table(findings.map((one) => ({ ...one }))));
    const wrong = findings.filter(({ verdict }) => verdict === 'wrong').length;
    if (wrong > 0) throw new CommandError(EXIT.failed, `${counted(wrong, 'thing is', 'things are')} wrong`);
  },
});

const finding =
  (what: string) =>
  (verdict: Finding['verdict'], why: string): Finding => ({ what, verdict, why });

function owner(dir: string): Finding {
  const found = finding('owner and modes');
  if (!existsSync(dir)) return found('ok', `${dir} is not there yet; serve makes it for its owner alone`);
  try {
    refuseOthers(realDisk, dir);
    const above = openAbove(dir);
    const ours = `${dir} belongs to this user, and nobody else can write there`;
    return above === undefined
      ? found('ok', ours)
      : found('note', `${ours}; but whoever can write in ${above} can move it away: chmod go-w, or name another place`);
  } catch (error) {
    return found('wrong', (error as Error).message);
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

/** Free, for this user; beside what is used already. */
function room(dir: string): Finding {
  const found = finding('free disk');
  const there = existsSync(dir) ? dir : nearest(dir);
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const used = there === dir ? filesIn(dir).reduce((sum, { size }) => sum + size, 0) : 0;
  const wanted = Math.max(MIN_ROOM_BYTES, ROOM_PER_BYTE * used);
  const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
  const why = `${megabytes(free)} are free where the store has ${megabytes(used)}`;
  return free < wanted ? found('wrong', `${why}; a compaction wants ${megabytes(wanted)}`) : found('ok', why);
}

function nearest(dir: string): string {
  const above = path.dirname(path.resolve(dir));
  return existsSync(above) ? above : nearest(above);
}

const filesIn = (dir: string) =>
  readdirSync(dir).flatMap((name) => statSync(path.join(dir, name), { throwIfNoEntry: false }) ?? []);

function lock(): Finding {
  const found = finding('lock');
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  if (folders.some((folder) => existsSync(path.join(folder, 'flock'))))
    return found('ok', 'the flock program is there');
  return found('wrong', 'there is no flock program (util-linux): a second server is kept away less surely');
}

/** Loaded only where there is a database. */
async function connection(store: string): Promise<Finding[]> {
  const { doubtsOf } = await import('../postgres/server.ts');
  const found = finding('database');
  const doubts = doubtsOf(store);
  if (doubts.length === 0) return [found('ok', 'every host of --store is this machine, or must prove who it is')];
  return doubts.map((doubt) => found('wrong', doubt));
}

function clock(dir: string | undefined): Finding {
  const found = finding('clock');
  const now = Date.now();
  const newest = dir && existsSync(dir) ? Math.max(0, ...filesIn(dir).map(({ mtimeMs }) => mtimeMs)) : 0;
  const at = new Date(now).toISOString();
  if (now < EARLIEST_MS) return found('wrong', `it says ${at}: set it, or wait for the time service`);
  if (newest > now + MAX_AHEAD_MS) return found('wrong', `it says ${at}, and the store was written after that`);
  return found('ok', `it says ${at}`);
}

function proxy({ host, trustProxy }: { host: string; trustProxy: number }): Finding {
  const found = finding('proxies');
  if (trustProxy === 0) return found('ok', 'callers are counted by the address of their connection');
  const trusted = `callers are counted by what ${counted(trustProxy, 'proxy', 'proxies')} in front wrote into X-Forwarded-For`;
  if (isLoopback(host)) return found('ok', trusted);
  const past = `who reaches ${host} past them writes what he likes: listen on 127.0.0.1, or let only them in`;
  return found('note', `${trusted}; ${past}`);
}

function encryption({ host, baseUrl }: { host: string; baseUrl?: string }): Finding {
  const found = finding('TLS');
  if (isLoopback(host)) return found('ok', `only this machine reaches ${host}`);
  if (baseUrl?.startsWith('https:')) return found('ok', `--base-url says that a proxy with TLS is in front`);
  return found(
    'note',
    `keys reach ${host} in clear: put a proxy with TLS in front, and name it by --base-url https://…`,
  );
}

function figures(host: string | undefined): Finding {
  const found = finding('metrics');
  if (host === undefined || isLoopback(host)) return found('ok', 'nobody but this machine reaches them');
  return found('note', `whoever reaches ${host} reads them: they are not for the public`);
}

/** What the system lets this process have; a service manager may set others for the server. */
function processLimits(): Finding[] {
  const limits = existsSync('/proc/self/limits') ? readFileSync('/proc/self/limits', 'utf8') : '';
  const soft = (name: string) => new RegExp(`^Max ${name} +(\\S+)`, 'm').exec(limits)?.[1];
  const [cores, files] = [soft('core file size'), soft('open files')];
  const [ofCores, ofFiles] = [finding('core dumps'), finding('descriptors')];
  if (cores === undefined || files === undefined) return [];
  return [
    cores === '0'
      ? ofCores('ok', 'none is written')
      : ofCores('note', 'a dump of memory holds keys: ulimit -c 0, or LimitCORE=0 in the unit'),
    Number(files) >= WANTED_DESCRIPTORS || files === 'unlimited'
      ? ofFiles('ok', `${files} may be open`)
      : ofFiles('note', `${files} may be open, fewer than 10,000 connections need: ulimit -n ${WANTED_DESCRIPTORS}`),
  ];
}

function runtime(): Finding {
  const found = finding('runtime');
  const isMaintained = Number(process.versions.node.split('.')[0]) >= OLDEST_MAINTAINED_NODE;
  if (isMaintained) return found('ok', `Node ${process.version} is maintained`);
  return found('note', `Node ${process.version} gets no security fixes any more: use a newer one, or the binary`);
}
