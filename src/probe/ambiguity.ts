/** F: ambiguous messages (request smuggling). A gateway must refuse them, or pass them on with one meaning only. */
import { nothing } from './judgement.ts';
import { allowed, breaks, JSON_TYPE, PET, type Row, row, type Sender, same } from './row.ts';
import { headerOf, linesOf, type Message, markOf, shown, statusOf, targetOf } from './wire.ts';

/** The time in which a hidden request may arrive. */
const HIDDEN_MS = 500;

/** The headers in which two readers differ. A SP may stand for a NUL (RFC 9110 5.5) and for the end of a line. */
const toldIn = ({ headers }: Message, names: readonly string[]) =>
  names
    .flatMap((name) => linesOf({ headers }, name).map((value) => `${name}: ${value}`))
    .join(' ')
    .replace(/[\s\0]+/g, ' ');

/**
 * `made`: the verdict where the gateway makes it plain: `same` where the RFC names that beside the refusal, `allowed`
 * where a recipient may recover, `breaks` where it must refuse. `may`: the bodies it then can have.
 */
const ambiguous = (id: string, rule: string, send: Row['send'], made = breaks, may?: string[]): Row =>
  row(id, rule, send, { isAmbiguous: true, allowed: '9110 2.4' }, (seen) => {
    const { arrived, finals, isDirect } = seen;
    const passed = arrived.filter((one) => one.isWhole || one.faults.length > 0);
    if (passed.some((one) => targetOf(one).endsWith('/smuggled'))) {
      return breaks('the body of a request arrived as a request of its own', '9112 11.2');
    }
    if (isDirect) return same('nothing stands between');
    const faults = [...new Set(passed.flatMap((one) => one.faults))];
    if (faults.length > 0) return breaks(`passed on with ${faults.join(', ')}`);
    const isWaiting = seen.talks.some(({ ended, finals }) => ended === undefined && finals.length === 0);
    if (isWaiting) return breaks(nothing(seen));
    if (passed.length + finals.length === 0) return same('not passed on as a whole, and the connection closed');
    const own = finals.find((one) => markOf(one) === undefined && statusOf(one) < 400);
    if (own !== undefined)
      return breaks(`the gateway itself answers ${shown(own.line)}: it is neither refused nor passed on`);
    const refused = finals.filter((one) => statusOf(one) >= 400); // how much had arrived by then is chance
    if (refused.length === finals.length)
      return same(`refused${refused.length > 0 ? ` with ${statusOf(refused[0])}` : ''}`);
    const body = passed.map((one) => one.body).find((one) => may && !may.includes(one));
    if (body !== undefined) return breaks(`passed on with another body: ${shown(body)}`);
    if (made !== same)
      return made(`made plain and passed on, where it ${made === breaks ? 'must' : 'should'} be refused`);
    const { sent } = seen.pairs[0];
    const names = sent.headers.map(([name]) => name).filter((one) => /^X-(?!Probe)/.test(one));
    const is = passed.map((one) => toldIn(one, names)).find((one) => one !== toldIn(sent, names));
    if (is === undefined) return same('made plain, and passed on');
    const without = `passed on without ${names[0]}, which another reader would have seen`;
    return breaks(
      is === '' ? without : `passed on as ${shown(is)}, where another reader sees ${shown(toldIn(sent, names))}`,
    );
  });

const CHUNKED = 'Transfer-Encoding: chunked';
const SIZE = PET.length.toString(16);
const CHUNKS = `${SIZE}\r\n${PET}\r\n0\r\n\r\n`;
const LENGTH = `Content-Length: ${PET.length}`;

/** A POST with framing of its own, and a GET with lines of its own. */
const posting =
  (lines: string[], body: string, version = '1.1') =>
  (to: Sender) =>
    to.head(`POST ${to.path}/pets HTTP/${version}`, [JSON_TYPE, ...lines]) + body;
const getting = (line: string) => (to: Sender) => to.head(`GET ${to.path}/pets HTTP/1.1`, [line]);

/** Ways to show two readers two ends of one body: to one of them the hidden request is still body. */
function smuggling(to: Sender): string[] {
  const hidden = to.head(`GET ${to.path}/smuggled HTTP/1.1`);
  const [behind, size] = [`0\r\n\r\n${hidden}`, `${hidden.length.toString(16)}\r\n`];
  const covered = `Content-Length: ${behind.length}`;
  const codings = [CHUNKED, CHUNKED.replace(':', ' :'), CHUNKED.replace(' ', ' \v'), CHUNKED.replace(' ', '\r\n ')];
  return [
    posting([`Content-Length: ${size.length}`, CHUNKED], `${size}${hidden}\r\n0\r\n\r\n`)(to),
    ...[...codings, `X: a\n${CHUNKED}`].map((coding) => posting([covered, coding], behind)(to)),
  ];
}

export const AMBIGUITY: Row[] = [
  ambiguous('both-lengths', '9112 6.1', posting([`Content-Length: ${CHUNKS.length}`, CHUNKED], CHUNKS), same, [PET]),
  ambiguous('two-lengths', '9112 6.3', posting([LENGTH, 'Content-Length: 2'], PET)),
  ambiguous('te-list', '9112 6.3', posting([`${CHUNKED}, identity`], CHUNKS)),
  ambiguous('te-in-10', '9112 6.1', posting([CHUNKED], CHUNKS, '1.0'), same, [PET]),
  ambiguous('obs-fold', '9112 5.2', getting('X-Fold: a\r\n b'), same),
  ambiguous('bare-lf', '9112 2.2', getting('X-Bare: a\nX-Next: b'), same),
  ambiguous('space-before-colon', '9112 5.1', getting('X-Space : a')),
  ambiguous('nul', '9110 5.5', getting('X-Nul: a\0b'), same),
  ambiguous('two-hosts', '9112 3.2', getting('Host: other.example')),
  row(
    'host-against-target',
    '9112 3.2.2',
    (to) => to.head(`GET http://${to.authority}${to.path}/pets HTTP/1.1`, [], 'Host: other.example'),
    { isAmbiguous: true, allowed: '9110 3.7' },
    ({ request, reply, isDirect, to }) => {
      if (isDirect) return same('nothing stands between');
      const status = reply && statusOf(reply);
      if (request === undefined && status >= 400) return same(`refused with ${status}`);
      if (request === undefined) return breaks(`the gateway itself answers ${status}`);
      const host = headerOf(request, 'host');
      if (host === 'other.example') return breaks('Host is passed on, though the target names another');
      return host === to.authority ? same('the target decides') : allowed('the gateway rewrites Host');
    },
  ),
  ambiguous('bad-chunk-size', '9112 7.1', posting([CHUNKED], CHUNKS.replace(SIZE, `${SIZE}x`)), allowed),
  ambiguous(
    'smuggled',
    '9112 11.2',
    (to) => (first) => {
      const sending = smuggling(to).map((text, at) => {
        const talk = at === 0 ? first : to.connect();
        talk.write(text);
        return talk.whole(1).then(() => talk.whole(2, HIDDEN_MS + to.delayMs));
      });
      return Promise.all(sending);
    },
    allowed,
  ),
];
