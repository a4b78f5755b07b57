/** Gateways that do one thing otherwise to all that passes: where it is wrong nearly every case says so, and else none. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { lived } from '../../src/probe/lived.ts';
import { CASES, probeGateway } from '../../src/probe/probe.ts';
import type { Run } from '../../src/probe/report.ts';
import { freePort } from '../program.ts';
import { type Fault, proxyFor } from './proxy.ts';

const isWaiting = (id: string) => /^(?:idle-\d+|reply-after-25|drip)$/.test(id);
/** The gateway of the tests refuses them itself, as it should. */
const REFUSED = CASES.slice(CASES.indexOf('both-lengths')).filter((id) => id !== 'host-against-target');
/** It waits for the whole reply before it changes one, and leaves Host alone: these break in any case. */
const AMISS = ['continue-passed', 'host-against-target'];

/** All cases but those that wait for nothing but time. */
async function probed(t: TestContext, fault: Fault, only = CASES.filter((id) => !isWaiting(id))): Promise<Run> {
  const port = await freePort();
  const through = await proxyFor(t, port, fault);
  return await probeGateway({ listen: { host: '127.0.0.1', port }, through, only, slow: false }, () => {});
}

const idsOf = ({ cases }: Run, ...verdicts: string[]) =>
  cases.filter(({ verdict }) => verdicts.includes(verdict)).map(({ id }) => id);

function parted(reply: string): [head: string, body: string] {
  const at = reply.indexOf('\r\n\r\n');
  return [reply.slice(0, at), reply.slice(at + 4)];
}
const head = (change: (head: string) => string): Fault => ({
  rewrite: (reply) => {
    const [head, body] = parted(reply);
    return `${change(head)}\r\n\r\n${body}`;
  },
});
/** Another body, with the length that it has. */
const body = (change: (body: string) => string): Fault => ({
  rewrite: (reply) => {
    const [head, body] = parted(reply);
    const changed = body === '' ? '' : change(body);
    const length = body === '' ? '$&' : `Content-Length: ${changed.length}`;
    return `${head.replace(/^content-length: .*/im, length)}\r\n\r\n${changed}`;
  },
});
const adding = (line: string) => head((text) => `${text}\r\n${line}`);

const BODYLESS = ['method-head', 'reply-204', 'reply-304', 'reply-head-length'];
/** Whose requests never become whole. */
const EARLY = ['early-401', 'early-413', 'continue-refused'];
const CUT = ['cut-length', 'cut-chunk'];
/** Whose replies have no Content-Type. */
const UNTYPED =
  /^(?:reply-(?:retry-after|ratelimit|links|date|www-.*|204|304|head-length|103|trailers|9k|90-headers)|early-.*|continue-refused|pipelined|close-from-origin|cut-chunk)$/;

/** What is wrong, what `same` may stand for all the same, and the evidence: of the case `header-host`. */
const WRONG: Record<string, [fault: Fault, mayBeSame: string[], evidence: RegExp]> = {
  'each reply comes twice': [
    { behind: (reply) => reply },
    CUT,
    /^\d+ bytes came behind the reply: HTTP\/1\.1 200 OK \| .*\{"ok":true\}$/,
  ],
  'bytes come behind each reply, and later': [
    { behind: () => '<!-- ad -->', behindMs: 30 },
    [...CUT, ...REFUSED],
    /^11 bytes came behind the reply: <!-- ad -->$/,
  ],
  'a byte of each body is another': [
    body((text) => text.replace(/.(?=.$)/s, '_')),
    [...BODYLESS, ...CUT, ...REFUSED, 'reply-trailers'],
    /^the body is another from byte 10 of 11 on: "_}" in place of "e}", 11 bytes in all$/,
  ],
  'each body has a banner': [
    body((text) => `<!-- ad -->${text}`),
    [...BODYLESS, ...CUT, ...REFUSED],
    /^the body is another from byte 1 of 11 on: "<!-- ad -->\{"ok":true\}" in place of "\{"ok":true\}", 22 bytes in all$/,
  ],
  'JSON is written anew': [
    body((text) => text.replaceAll(':', ': ')),
    [...BODYLESS, ...CUT, ...REFUSED, 'reply-trailers', 'reply-encoding', 'pipelined'],
    /^the body is another from byte 7 of 11 on: " true}" in place of "true}", 12 bytes in all$/,
  ],
  'Content-Type is dropped': [
    head((text) => text.replace(/\r\ncontent-type:.*/i, '')),
    [...CASES.filter((id) => UNTYPED.test(id)), ...REFUSED],
    /^Content-Type is gone$/,
  ],
  'Content-Type is another': [
    head((text) => text.replace(/(?<=\r\ncontent-type: ).*/i, 'text/html')),
    [...CASES.filter((id) => UNTYPED.test(id)), ...REFUSED],
    /^Content-Type is text\/html$/,
  ],
  'a reply has two lengths': [adding('Content-Length: 3'), REFUSED, /^the reply came with not one Content-Length$/],
  'the gateway answers all but the first by itself': [{ own: { status: '200 OK' } }, REFUSED, /^$|itself answers 200$/],
  'bytes arrive behind each request': [
    { body: (bytes) => `${bytes}<garbage>` },
    [...REFUSED, ...EARLY],
    /^it arrived with bytes behind it that are no request of anybody: <garbage>$/,
  ],
  'bytes that look like a method arrive behind each request': [
    { body: (bytes) => `${bytes}GARBAGE` },
    // Of a large request they come in a packet of their own, and so may begin a request; so behind one that is left.
    [...REFUSED, ...EARLY, 'early-left', 'body-1m', 'body-64k'],
    /^it arrived with bytes behind it that are no request of anybody: GARBAGE$/,
  ],
};

describe('gateways that do one thing otherwise to all that passes', { concurrency: 4 }, () => {
  for (const [name, [fault, mayBeSame, evidence]] of Object.entries(WRONG)) {
    test(`seen wherever it happens: ${name}`, async (t) => {
      const run = await probed(t, fault);
      const unseen = idsOf(run, 'same').filter((id) => !mayBeSame.includes(id));
      assert.deepEqual(unseen, []);
      assert.match(run.cases.find(({ id }) => id === 'header-host')!.why, evidence);
    });
  }

  test('a request that is sent twice is told in every case that has one: a GET is charged twice, a POST done twice', async (t) => {
    const run = await probed(t, { again: true });
    assert.deepEqual(
      idsOf(run, 'same').filter((id) => ![...REFUSED, ...EARLY].includes(id)),
      [],
    );
    for (const id of ['body-64k', 'reply-409', 'method-patch', 'continue-passed'])
      assert.ok(idsOf(run, 'breaks').includes(id), id);
    assert.match(run.cases.find(({ id }) => id === 'header-host')!.why, /^it arrived twice, and a service charges it/);
  });

  for (const line of [
    'Set-Cookie: lb=1',
    'Cache-Control: public',
    'Expires: 0',
    'ETag: "lb"',
    'Content-Language: de',
  ]) {
    test(`a header that a client takes for the service's own is told once: ${line}`, async (t) => {
      const run = await probed(t, adding(line), ['header-host', 'reply-429', 'reply-headers']);
      assert.deepEqual(idsOf(run, 'breaks'), ['reply-headers']);
      assert.equal(run.cases.at(-1)!.why, `the gateway adds ${line}`);
    });
  }

  test('Set-Cookie lines may not become one, as other lines may', async (t) => {
    const joined = head((text) => text.replace(/\r\nSet-Cookie: (?=b=2)/, ', ').replace(/\r\nLink: (?=.*first)/, ', '));
    const run = await probed(t, joined, ['reply-links', 'reply-headers']);
    assert.deepEqual(
      run.cases.map(({ verdict }) => verdict),
      ['allowed', 'breaks'],
    );
  });

  const chunked = (reply: string) => {
    const [head, body] = parted(reply);
    if (body === '' || !/^content-length:/im.test(head)) return reply;
    const framed = head.replace(/^content-length: .*/im, 'Transfer-Encoding: chunked');
    return `${framed}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  };
  const compressed = (reply: string) => {
    const [head, body] = parted(reply);
    if (!head.includes('ETag: "a"') || body.length < 1_000) return reply;
    const zipped = gzipSync(body).toString('latin1');
    const coded = head.replace('"a"', 'W/"a"').replace(/(?<=^content-length: ).*/im, `${zipped.length}`);
    return `${coded}\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n\r\n${zipped}`;
  };
  const plain = (reply: string) => {
    const [head, body] = parted(reply);
    if (!/^content-encoding: gzip/im.test(head)) return reply;
    const text = gunzipSync(Buffer.from(body, 'latin1')).toString('latin1');
    const bare = head.replace(/\r\ncontent-encoding:.*/i, '').replace(/(?<=^content-length: ).*/im, `${text.length}`);
    return `${bare}\r\n\r\n${text}`;
  };
  const small = (text: string) => text.replace(/^[\w-]+:/gm, (name) => name.toLowerCase());

  /** What a gateway may do, and the cases in which that is told. */
  const RIGHT: Record<string, [fault: Fault, told: string[]]> = {
    'it writes names small': [{ head: ([line, ...lines]) => [line, ...lines.map(small)], ...head(small) }, []],
    'it names itself': [
      head(
        (text) => `${text}\r\nServer: lb\r\nVia: 1.1 lb\r\nAge: 0\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive`,
      ),
      [],
    ],
    'it speaks HTTP/1.0 and ends each connection': [{ isOld: true }, ['pipelined']],
    'it frames replies anew': [{ rewrite: chunked }, []],
    'it compresses': [{ rewrite: compressed }, ['reply-compressed', 'reply-headers']],
    'it decompresses': [{ rewrite: plain }, ['reply-encoding']],
    'it adds a header of its own': [adding('X-Cache: MISS'), ['reply-headers']],
  };

  for (const [name, [fault, told]] of Object.entries(RIGHT)) {
    test(`no case breaks by what a gateway may do: ${name}`, async (t) => {
      const run = await probed(t, fault);
      const breaking = run.cases.filter(({ id, verdict }) => verdict === 'breaks' && !AMISS.includes(id));
      assert.deepEqual(
        breaking.filter(({ id }) => !CUT.includes(id)),
        [],
      ); // to change a reply it is read to its end
      assert.deepEqual(
        idsOf(run, 'allowed').filter((id) => id !== 'header-forwarded'),
        told,
      );
    });
  }

  for (const [name, fault] of Object.entries<Fault>({
    closes: { closesAfter: 20 },
    dies: { diesAfter: 20 },
    'falls silent': { silentAfter: 20 },
  })) {
    test(`a gateway that ${name} midway: what was not reached is never the same, and it is told once`, async (t) => {
      const begun = lived();
      const run = await probed(t, fault, [...CASES.filter((id) => !isWaiting(id)), 'idle-61']);
      assert.ok(lived() - begun < 30_000, 'nothing waits for the minute of idle-61');
      assert.match(run.error!, /^the gateway was lost after \d+ of 117 cases: cannot reach http:/);
      const nothing = run.cases.filter(({ arrived, came }) => arrived === '' && came === '');
      assert.ok(nothing.length > 60, `${nothing.length} cases`);
      for (const { id, verdict, why } of nothing) assert.match(`${verdict}: ${why}`, /^breaks: not reached: /, id);
    });
  }

  const FOLDED = /\r\n +b/;
  const BARE = /(?<!\r)\n/;
  const CODED = /\r\ntransfer-encoding:.*/i;
  /** What is done with the ambiguous, and what is said of it. */
  const MENDED: [id: string, fault: Fault, told: RegExp][] = [
    ['obs-fold', { mends: (text) => text.replace(FOLDED, ' b') }, /^same: made plain, and passed on$/],
    ['obs-fold', { mends: (text) => text.replace(/\r\nX-Fold.*\r\n b/, '') }, /^breaks: passed on without X-Fold/],
    ['nul', { mends: (text) => text.replace('\0', ' ') }, /^same: made plain, and passed on$/],
    ['nul', { mends: (text) => text.replace(/\r\nX-Nul.*/, '') }, /^breaks: passed on without X-Nul/],
    ['nul', { mends: (text) => text.replace(/\0.*/, '') }, /^breaks: passed on as X-Nul: a, where another reader sees/],
    ['nul', { mends: (text) => text.replace('\0', '') }, /^breaks: passed on as X-Nul: ab, where another reader sees/],
    ['obs-fold', { mends: (text) => text.replace(FOLDED, '') }, /^breaks: passed on as X-Fold: a, where another/],
    ['bare-lf', { mends: (text) => text.replace(BARE, '\r\n') }, /^same: made plain, and passed on$/],
    ['bare-lf', { mends: (text) => text.replace(BARE, ' ') }, /^same: made plain, and passed on$/],
    ['bare-lf', { mends: (text) => text.replace('\nX-Next: b', '') }, /^breaks: passed on as X-Bare: a, where another/],
    [
      'two-lengths',
      { mends: (text) => text.replace(/\r\nContent-Length: 2(?!9)/, '') },
      /^breaks: made plain and passed on/,
    ],
    ['space-before-colon', { mends: (text) => text.replace(' :', ':') }, /^breaks: made plain and passed on, where it/],
    [
      'two-hosts',
      { mends: (text) => text.replace(/\r\nHost: other.*/, '') },
      /^breaks: made plain and passed on, where/,
    ],
    [
      'both-lengths',
      { mends: (text) => text.replace(/\r\ncontent-length:.*/i, '') },
      /^same: made plain, and passed on$/,
    ],
    ['both-lengths', { mends: (text) => text.replace(CODED, '') }, /^breaks: passed on with another body: 1d/],
    [
      'nul',
      { mends: (text) => text, own: { status: '200 OK' } },
      /^breaks: the gateway itself answers HTTP\/1\.1 200 OK/,
    ],
  ];

  test('what is ambiguous may be made plain, but nothing of it may be lost, and it may not be answered as if it were plain', async (t) => {
    for (const [id, fault, told] of MENDED) {
      const { cases } = await probed(t, fault, [id]);
      assert.match(`${cases[0].verdict}: ${cases[0].why}`, told, id);
    }
  });

  test('a second request on a connection that is taken and then forgotten', async (t) => {
    const run = await probed(t, { hangsAt: 2 }, ['pipelined', 'idle-4']);
    for (const { id, verdict, why } of run.cases)
      assert.match(`${verdict}: ${why}`, /^breaks: .*no whole reply came in time$/, id);
  });
});
