/** The URL of `--store`. No message repeats any of it: in a URL that is mistyped, each part may belong to a password. */
const SHAPE = /^postgres(?:ql)?:\/\/(?:[^@/?#]*@)?[^/?@#,]+\/[^/?@#]+(?:\?[^@#]*)?$/;
/** The directory of a socket, or this machine itself: no network lies between. */
const LOCAL = /^(?:\/.*|localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const MODES = {
  disable: false,
  require: { rejectUnauthorized: false },
  'verify-full': { rejectUnauthorized: true },
} as const;
const UNVERIFIED =
  'the identity of the database is not verified: another server could stand in its place, and read and change what is sent';

export interface Address {
  /** Without its parameters. */
  readonly url: string;
  readonly schema: string;
  readonly ssl: (typeof MODES)[keyof typeof MODES];
  readonly warning?: string;
}

/** A host other than this machine must prove its identity, unless `sslmode` says otherwise. */
export function addressOf(text: string): Address {
  const url = parsed(text);
  const isLocal = LOCAL.test(decodeURIComponent(url.hostname));
  const parameters = Object.fromEntries(url.searchParams);
  const { schema = 'petstore', sslmode = isLocal ? 'disable' : 'verify-full', ...others } = parameters;
  if (Object.keys(others).length > 0) throw new Error('--store knows the parameters schema and sslmode alone');
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new Error('--store: schema must be 1 to 63 of a–z, 0–9 and _, and not begin with a digit');
  }
  if (!Object.hasOwn(MODES, sslmode)) {
    throw new Error(`--store: sslmode must be one of ${Object.keys(MODES).join(', ')}`);
  }
  const isUnverified = !isLocal && sslmode !== 'verify-full';
  const warning = isUnverified ? `${UNVERIFIED} (sslmode=${sslmode})` : undefined;
  url.search = '';
  return { url: url.href, schema, ssl: MODES[sslmode as keyof typeof MODES], warning };
}

function parsed(text: string): URL {
  try {
    decodeURIComponent(text);
    if (SHAPE.test(text)) return new URL(text);
  } catch {} // what Node says may repeat the text
  throw new Error(
    '--store must look like postgres://user:password@host/database?schema=petstore; ' +
      'in a password / is %2F, @ is %40, ? is %3F, # is %23, % is %25',
  );
}
