/** The URL of `--store`. No message repeats any of it: in a URL that is mistyped, each part may belong to a password. */
const SHAPE = /^postgres(?:ql)?:\/\/(?:[^@/?#]*@)?[^/?@#,]+\/[^/?@#]+(?:\?[^@#]*)?$/;
const DEFAULT_PORT = 5432;
const MODES = {
  disable: {
    ssl: false,
    warning: 'the connection to the database is not encrypted (sslmode=disable): it can be read and changed on the way',
  },
  require: {
    ssl: { rejectUnauthorized: false },
    warning: 'the identity of the database is not verified (sslmode=require): another server could stand in its place',
  },
  'verify-full': { ssl: { rejectUnauthorized: true }, warning: undefined },
} as const;
/** The directory of a socket, or this machine itself: no network lies between. */
const LOCAL = /^(?:\/.*|localhost|127(?:\.\d{1,3}){3}|::1)$/;

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password?: string;
  readonly database: string;
  readonly schema: string;
  readonly ssl: false | { readonly rejectUnauthorized: boolean };
  /** Of a connection that is not verified or not encrypted. */
  readonly warning?: string;
}

/** A host other than this machine must prove its identity, unless `sslmode` says otherwise. */
export function addressOf(text: string): Address {
  if (!SHAPE.test(text) || !URL.canParse(text) || new URL(text).hostname === '') {
    throw new Error(
      '--store must look like postgres://user:password@host/database?schema=petstore; ' +
        'in a password / is %2F, @ is %40, ? is %3F, # is %23',
    );
  }
  const { username, password, hostname, port, pathname, searchParams } = new URL(text);
  const { schema = 'petstore', sslmode, ...others } = Object.fromEntries(searchParams);
  if (Object.keys(others).length > 0) throw new Error('--store knows the parameters schema and sslmode alone');
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new Error('--store: schema must be 1 to 63 of a–z, 0–9 and _, and not begin with a digit');
  }
  if (sslmode !== undefined && !isMode(sslmode)) {
    throw new Error(`--store: sslmode must be one of ${Object.keys(MODES).join(', ')}`);
  }
  const host = decoded(hostname.replace(/^\[|\]$/g, ''));
  const isLocal = LOCAL.test(host);
  const { ssl, warning } = MODES[sslmode ?? (isLocal ? 'disable' : 'verify-full')];
  return {
    host,
    port: Number(port || DEFAULT_PORT),
    user: decoded(username) || undefined,
    password: decoded(password) || undefined,
    database: decoded(pathname.slice(1)),
    schema,
    ssl,
    warning: isLocal ? undefined : warning,
  };
}

const isMode = (text: string): text is keyof typeof MODES => Object.hasOwn(MODES, text);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error('--store: a % must begin an escape such as %40');
  }
}
