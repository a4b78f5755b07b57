/** What each check says of a client's history: a table of histories, with what it makes of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS } from '../../src/lab/checks.ts';
import { count, gradeOf, newTallies } from '../../src/lab/grade.ts';
import { history, lost, post, type Told } from './history.ts';

type Expected = 'pass' | 'warn' | 'fail' | 'unseen';
type Row = [verdict: Expected, what: string, history: Told[], requestIds?: string[]];

const range = <T>(n: number, make: (i: number) => T) => Array.from({ length: n }, (_, i) => make(i));
const page = (after: number) => `/v1/pets?limit=20&after=${after}`;
const link = (after: number) => `/v1/pets?${after}`;
const same = { target: '/v1/pets', status: 500 };
/** Eight connections refused at second 0, told to come back at second 10; `back`: when each does. */
const wave = (n: number, back: (i: number) => number): Told[] => [
  ...range(n, (i) => ({ s: 0, wait: 10, status: 429, connection: i })),
  ...range(n, (i) => ({ s: 10.001 + back(i), connection: 100 + i })).sort((a, b) => a.s - b.s),
];

const TABLE: Record<string, Row[]> = {
  retry_after: [
    ['unseen', 'nothing was refused', [{ s: 0 }, { s: 1 }]],
    ['unseen', 'refused, and nothing came after', [{ s: 0, status: 429, wait: 5 }]],
    ['pass', 'it waited', [{ s: 0, status: 429, wait: 5 }, { s: 5.001 }]],
    ['pass', 'its timer fired a fraction early', [{ s: 0, status: 503, wait: 5 }, { s: 4.997 }]],
    ['fail', 'it came early, if only just', [{ s: 0, status: 429, wait: 5 }, { s: 4.9 }], ['r1']],
    ['fail', 'a 503 holds as much', [{ s: 0, status: 503, wait: 5 }, { s: 1 }], ['r1']],
    ['unseen', 'a 503 that told no time', [{ s: 0, status: 503 }, { s: 1 }]],
    [
      'unseen',
      'another connection, less than a second after, could not know yet',
      [
        { s: 0, status: 429, wait: 5 },
        { s: 0.9, connection: 2 },
      ],
    ],
    [
      'fail',
      'another connection, a second after',
      [
        { s: 0, status: 429, wait: 5 },
        { s: 1.1, connection: 2 },
      ],
      ['r1'],
    ],
    [
      'unseen',
      'sent before the refusal had left',
      [
        { s: 0, status: 429, wait: 5, took: 100 },
        { s: 0.05, status: 429, wait: 5, took: 100 },
      ],
    ],
    [
      'fail',
      'a later refusal holds, though an earlier time has come',
      [{ s: 0, status: 429, wait: 1 }, { s: 2, status: 429, wait: 60 }, { s: 3 }],
      ['r2'],
    ],
  ],
  idempotency: [
    ['unseen', 'no POST failed', [post(0, { key: 'a' }), post(1, { key: 'a' })]],
    ['unseen', 'nobody asked again', [post(0, { ...lost, key: 'a' }), { s: 1 }]],
    ['pass', 'the same key after a lost reply', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' })]],
    ['pass', 'the same key after a 5xx', [post(0, { status: 503, key: 'a' }), post(1, { key: 'a' })]],
    ['fail', 'no key', [post(0, lost), post(1)], ['r1']],
    ['fail', 'a new key', [post(0, { ...lost, key: 'a' }), post(1, { key: 'b' })], ['r1']],
    ['fail', 'a key only the second time', [post(0, { status: 500 }), post(1, { key: 'b' })], ['r1']],
    ['fail', 'a reply that broke off is lost', [post(0, { isLost: true }), post(1)], ['r1']],
    ['unseen', 'another body', [post(0, { ...lost, same: 'x' }), post(1, { same: 'y' })]],
    ['fail', 'just within a minute', [post(0, lost), post(60)], ['r1']],
    ['unseen', 'more than a minute later', [post(0, lost), post(60.1)]],
    ['pass', 'once a reply has come, a new wish', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' }), post(2)]],
    ['unseen', 'after a 4xx', [post(0, { status: 400 }), post(1)]],
    [
      'unseen',
      'a GET needs none',
      [
        { s: 0, target: '/v1/pets', ...lost },
        { s: 1, target: '/v1/pets' },
      ],
    ],
  ],
  backoff: [
    ['unseen', 'two failures', [0, 1, 2].map((s) => ({ s, target: '/v1/pets', status: s < 2 ? 500 : 200 }))],
    ['fail', 'three, and always the same wait', [0, 1, 2].map((s) => ({ s, ...same })), ['r2']],
    ['pass', 'three, and a longer wait', [0, 1, 3].map((s) => ({ s, ...same }))],
    ['pass', 'just half as long again', [0, 1.001, 2.504].map((s) => ({ s, ...same }))],
    ['fail', 'a little less', [0, 1.001, 2.4].map((s) => ({ s, ...same })), ['r2']],
    ['pass', 'most waits grow', [0, 1, 3, 4, 8].map((s) => ({ s, ...same }))],
    ['fail', 'most do not', [0, 1, 3, 5, 7, 9].map((s) => ({ s, ...same })), ['r3', 'r4', 'r5']],
    ['fail', 'it never waits: what a request takes is no wait', [0, 0.002, 0.006, 0.014].map((s) => ({ s, ...same }))],
    [
      'pass',
      'the wait before what went well counts too',
      [...[0, 1, 3], 7].map((s) => ({ s, ...same, ...(s === 7 && { status: 200 }) })),
    ],
    [
      'unseen',
      'with Retry-After there is nothing to grow',
      [0, 2, 4, 6].map((s) => ({ s, target: '/v1/pets', status: 503, wait: 1 })),
    ],
    [
      'unseen',
      'a reply between is no row',
      [500, 500, 200, 500].map((status, s) => ({ s, target: '/v1/pets', status })),
    ],
    ['unseen', 'three requests, each its own', [0, 1, 2].map((s) => ({ s, status: 500 }))],
    ['unseen', 'side by side is no row', [0, 0.1, 0.2].map((s) => ({ s, took: 500, target: '/v1/pets', ...lost }))],
  ],
  herd: [
    ['unseen', 'seven connections', wave(7, () => 0)],
    ['fail', 'eight, all at once', wave(8, () => 0.01), ['r12']],
    ['pass', 'eight, spread out', wave(8, (i) => 0.2 * (i + 1))],
    ['pass', 'half of them at once', wave(8, (i) => (i < 4 ? 0 : 0.2 * i))],
    ['fail', 'one more than half', wave(8, (i) => (i < 5 ? 0 : 0.2 * i))],
    ['unseen', 'nobody is back yet', wave(8, () => 0).slice(0, 8)],
    ['unseen', 'three are back', wave(8, () => 0).slice(0, 11)],
    ['unseen', 'eight refusals of one connection', range(9, (i) => ({ s: i / 100, status: 429, wait: 10 }))],
    [
      'unseen',
      'one after the other, a minute apart',
      range(10, (i) => ({ s: 60 * i, status: 429, wait: 60, connection: i, opens: true })),
    ],
    [
      'fail',
      'the newest of two waves',
      [...wave(8, (i) => i), ...wave(8, () => 0).map((one) => ({ ...one, s: one.s + 100 }))],
    ],
  ],
  hopeless: [
    ['unseen', 'nothing was refused', [{ s: 0 }, { s: 1 }]],
    ['pass', 'it went on', [{ s: 0, status: 404 }, { s: 1 }]],
    ['unseen', 'asked again twice', [0, 1, 2].map((s) => ({ s, target: '/v1/pets/9', status: 404 }))],
    ['fail', 'asked again three times', [0, 1, 2, 3].map((s) => ({ s, target: '/v1/pets/9', status: 404 })), ['r3']],
    ...[400, 401, 410, 422].map(
      (status): Row => ['fail', `${status}`, range(4, (s) => ({ s, target: '/v1/x', status }))],
    ),
    ['unseen', 'a 409 may pass', range(5, (s) => post(s, { status: 409 }))],
    [
      'pass',
      'it helped once',
      [404, 404, 201, 404, 404]
        .map((status, s) => ({ s, target: '/v1/x', status }))
        .concat([{ s: 9, target: '/v1/y', status: 200 }]),
    ],
    [
      'pass',
      'others between do not make it another',
      [...range(3, (s) => ({ s, target: '/v1/x', status: 404 })), { s: 4 }],
    ],
  ],
  reuse: [
    ['unseen', 'one request', [{ s: 0 }]],
    ['pass', 'always the same connection', range(20, (s) => ({ s }))],
    ['fail', 'always a new one', range(3, (s) => ({ s, connection: s, opens: true })), ['r1', 'r2']],
    ['pass', 'one in ten', range(11, (s) => ({ s, opens: s % 10 === 0 }))],
    ['fail', 'two in ten', range(11, (s) => ({ s, opens: s > 8 })), ['r9', 'r10']],
    ['unseen', 'five seconds after', [{ s: 0 }, { s: 5.001, connection: 2, opens: true }]],
    [
      'unseen',
      'the service ended the connection',
      [
        { s: 0, ...lost },
        { s: 1, connection: 2, opens: true },
      ],
    ],
    [
      'unseen',
      'every connection was busy',
      [
        { s: 0, took: 900 },
        { s: 0.1, connection: 2, opens: true },
      ],
    ],
    [
      'pass',
      'one of two connections was ended by the service, and has a successor',
      [{ s: 0 }, { s: 0, ...lost, connection: 2, opens: true }, { s: 0.2, connection: 3, opens: true }, { s: 0.3 }],
    ],
    [
      'fail',
      'but not two',
      [
        ...[{ s: 0 }, { s: 0, took: 100, ...lost, connection: 2, opens: true }],
        ...[3, 4].map((connection) => ({ s: connection, connection, opens: true })),
      ],
      ['r3'],
    ],
  ],
  paging: [
    ['unseen', 'first pages only', [{ s: 0, next: link(20) }, { s: 1 }]],
    [
      'pass',
      'it followed',
      [
        { s: 0, next: link(20) },
        { s: 1, target: page(20) },
      ],
    ],
    [
      'fail',
      'it counted by itself',
      [
        { s: 0, next: link(20) },
        { s: 1, target: page(40) },
      ],
      ['r1'],
    ],
    ['fail', 'no Link was there', [{ s: 0, target: page(20) }], ['r0']],
    [
      'fail',
      'the Link of another list',
      [
        { s: 0, next: '/v1/store/orders?20' },
        { s: 1, target: page(20) },
      ],
      ['r1'],
    ],
    ['pass', 'the eighth Link before', [...range(8, (s) => ({ s, next: link(s) })), { s: 9, target: page(0) }]],
    ['fail', 'the ninth', [...range(9, (s) => ({ s, next: link(s) })), { s: 9, target: page(0) }], ['r9']],
    [
      'fail',
      'a reply that had not left',
      [
        { s: 0, took: 500, next: link(20) },
        { s: 0.1, target: page(20) },
      ],
      ['r1'],
    ],
  ],
  redundant: [
    ['unseen', 'no GET', [post(0)]],
    ['pass', 'each its own', range(5, (s) => ({ s: s / 10 }))],
    ['fail', 'the same within a second', [0, 0.5].map((s) => ({ s, target: '/v1/pets' })), ['r1']],
    ['pass', 'the same after a second', [0, 1.001].map((s) => ({ s, target: '/v1/pets' }))],
    [
      'pass',
      'an animal has changed',
      [1, 2].map((petsVersion) => ({ s: petsVersion / 10, target: '/v1/pets', petsVersion })),
    ],
    [
      'pass',
      'one in five',
      [0, 0.1]
        .map((s) => ({ s, target: '/v1/pets' }))
        .concat(range(3, (s) => ({ s: s + 2, target: `/v1/pets?limit=${s + 1}` }))),
    ],
    ['pass', 'the first had failed', [lost, {}].map((how, i) => ({ s: i / 10, target: '/v1/pets', ...how }))],
  ],
  deprecated: [
    ['unseen', 'not used', [{ s: 0 }]],
    ['pass', 'used once', [{ s: 0, operation: 'getPet' }]],
    ['warn', 'used again', [0, 1].map((s) => ({ s, operation: 'getPet' })), ['r1']],
    ['pass', 'the first reply was lost', [lost, {}].map((how, s) => ({ s, operation: 'getPet', ...how }))],
  ],
  ban: [
    ['unseen', 'no request', []],
    ['pass', 'limited, and no ban', [{ s: 0, status: 429, wait: 60 }]],
    ['fail', 'a ban began', [{ s: 0, status: 429, wait: 120, bans: true }, { s: 200 }], ['r0']],
  ],
};

for (const [id, rows] of Object.entries(TABLE)) {
  test(`check ${id}`, () => {
    for (const [verdict, what, told, requestIds] of rows) {
      const tallies = newTallies();
      const requests = history(...told);
      for (const [at, one] of requests.entries()) count(tallies, one, requests.slice(0, at));
      const result = gradeOf(tallies).checks.find((check) => check.id === id)!;
      assert.equal(result.verdict, verdict, `${id}: ${what}: ${result.why}`);
      if (requestIds !== undefined) assert.deepEqual(result.requestIds, requestIds, `${id}: ${what}`);
      assert.equal(result.count > 0, result.requestIds.length > 0);
    }
  });
}

test('every check has its table', () => {
  assert.deepEqual(
    CHECKS.map(({ id }) => id),
    Object.keys(TABLE),
  );
});
