/** The URL of `--store`. Unlike other URLs it may name several hosts. */
const SHAPE = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?@#]+)(\/[^/?@#]+(?:\?[^@#]*)?)$/;
const DEFAULT_PORT = 5432;
const SSL = {
  disable: false,
  require: { rejectUnauthorized: false },
  'verify-full': { rejectUnauthorized: true },
} as const;
type Mode = keyof typeof SSL;
const MODES = Object.keys(SSL) as Mode[];
/** A socket's directory, or this machine itself: no network lies between. */
const NEAR = /^(?:\/.*|localhost|127(?:\.\d{1,3}){3}|::1)$/;

export type Server = ReturnType<typeof serverOf>;
export type Host = Server['hosts'][number];

/** Reads the URL. No message repeats any of it but a schema's name: every other part may belong to a password. */
export function serverOf(text: string) {
  const [, before, hosts = '', behind] = SHAPE.exec(text) ?? [];
  const urls = hosts.split(',').map((host) => before + host + behind);
  if (!urls.every((url) => URL.canParse(url) && new URL(url).hostname !== '')) {
    throw new Error(
      '--store must look like postgres://user:password@host1,host2/database?schema=petstore; ' +
        'in a password / is %2F, @ is %40, ? is %3F, # is %23',
    );
  }
  const { username, password, pathname, searchParams } = new URL(urls[0]);
  const { schema = 'petstore', sslmode, ...others } = Object.fromEntries(searchParams);
  if (Object.keys(others).length > 0) throw new Error('--store knows the parameters schema and sslmode alone');
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new Error('--store: schema must be 1 to 63 of a–z, 0–9 and _, and not begin with a digit');
  }
  const mode = MODES.find((one) => one === sslmode);
  if (sslmode !== undefined && !mode) throw new Error(`--store: sslmode must be one of ${MODES.join(', ')}`);
  return {
    hosts: urls.map((url) => hostOf(url, mode)),
    user: plain(username) || undefined,
    password: plain(password) || undefined,
    database: plain(pathname.slice(1)),
    schema,
  };
}

/**
 * `host`, `host:5432`, `[::1]:5432`, or a socket's directory with its slashes as %2F. Without `sslmode` a host other
 * than this machine must prove its identity.
 */
function hostOf(url: string, mode: Mode | undefined) {
  const { hostname, port } = new URL(url);
  const host = plain(hostname.replace(/^\[|\]$/g, ''));
  const isNear = NEAR.test(host);
  const held = mode ?? (isNear ? 'disable' : 'verify-full');
  return {
    host,
    port: Number(port || DEFAULT_PORT),
    ssl: SSL[held],
    /** A warning of the attack that the mode leaves possible; undefined: none. */
    doubt: isNear ? undefined : DOUBTS[held],
    /** True if a password may be sent so that its receiver can read it, or guess it at leisure (MD5). */
    isProven: held === 'verify-full' || host.startsWith('/'),
  };
}

const DOUBTS: Record<Mode, string | undefined> = {
  disable: 'is not encrypted (sslmode=disable): anybody on the way can read and change everything',
  require: 'is not verified (sslmode=require): another server could stand in its place',
  'verify-full': undefined,
};

function plain(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('--store: a % must begin an escape such as %40');
  }
}

/** A warning for each connection that is not verified or not encrypted. */
export const doubtsOf = (text: string): string[] =>
  serverOf(text).hosts.flatMap(({ host, doubt }) => (doubt ? [`the connection to ${host} ${doubt}`] : []));
