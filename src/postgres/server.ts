/** Where a store lies: what the URL of `--store` says. Unlike other URLs it may name several hosts. */
const SHAPE = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?@]+)(\/[^/?]+(?:\?.*)?)$/;
const DEFAULT_PORT = 5432;
const SSL = { disable: false, require: { rejectUnauthorized: false }, 'verify-full': { rejectUnauthorized: true } };

export type Server = ReturnType<typeof serverOf>;

/** The password is never repeated in a message. */
export function serverOf(text: string) {
  const [, before, hosts = '', behind] = SHAPE.exec(text) ?? [];
  const urls = hosts.split(',').map((host) => before + host + behind);
  if (!urls.every((url) => URL.canParse(url) && new URL(url).hostname !== '')) {
    throw new Error('--store must look like postgres://user:password@host1,host2/database?schema=petstore');
  }
  const { username, password, pathname, searchParams } = new URL(urls[0]);
  const { schema = 'petstore', sslmode = 'disable', ...others } = Object.fromEntries(searchParams);
  if (Object.keys(others).length > 0) throw new Error(`--store knows schema and sslmode, not ${Object.keys(others)}`);
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new Error(`--store: schema must be 1–63 of a–z, 0–9 and _, and not begin with a digit (got ${schema})`);
  }
  if (!Object.hasOwn(SSL, sslmode)) throw new Error(`--store: sslmode must be one of ${Object.keys(SSL).join(', ')}`);
  return {
    hosts: urls.map(hostOf),
    user: plain(username) || undefined,
    password: plain(password) || undefined,
    database: plain(pathname.slice(1)),
    schema,
    ssl: SSL[sslmode as keyof typeof SSL],
  };
}

/** `host`, `host:5432`, `[::1]:5432`, or a socket's directory with its slashes as %2F. */
function hostOf(url: string) {
  const { hostname, port } = new URL(url);
  return { host: plain(hostname.replace(/^\[|\]$/g, '')), port: Number(port || DEFAULT_PORT) };
}

function plain(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('--store: a % must begin an escape such as %40');
  }
}
