/** B and C: targets and methods. */
import { keepsBody } from './kept.ts';
import { allowed, ask, get, JSON_TYPE, PET, type Row, row, same } from './row.ts';
import { targetOf } from './wire.ts';

const SYNTAX = '3986 6.2.2.3';
const REFUSED = { mayRefuse: /^4/ };

/** The target must arrive as it was sent, or as one of `may`; a prefix in front of it is free. */
const target = (id: string, rule: string, tail: string, may: string[] = [], unusual: Partial<Row> = {}): Row =>
  row(id, rule, get([], tail), { ...unusual, may });

export const TARGETS: Row[] = [
  target('target-percent-letter', '3986 6.2.2.2', '/%70ets', ['/pets']),
  target('target-percent-slash', '3986 2.2', '/a%2Fb', [], { allowed: '3986 6.2.2.1' }),
  target('target-percent-dots', SYNTAX, '/a/%2e%2e/pets', ['/pets', '/a/../pets'], REFUSED),
  target('target-double-slash', '3986 3.3', '//pets'),
  target('target-dot', SYNTAX, '/./pets', ['/pets'], REFUSED),
  target('target-dotdot', SYNTAX, '/a/../pets', ['/pets'], REFUSED),
  target('target-question', '3986 6.2.3', '/pets?'),
  target('target-case', '3986 6.2.2.1', '/Pets/aB?C=d'),
  target('target-query', '3986 3.4', '/pets?b=2&a=1&b=1&c=&d'),
  target('target-plus', '3986 2.2', '/pets?q=a+b%20c'),
  target('target-pipe', '3986 2', '/pets?q=a|b', ['/pets?q=a%7Cb'], { allowed: '3986 2.1', mayRefuse: /^400$/ }),
  target('target-semicolon', '3986 3.3', '/pets;v=1?a=1;b=2'),
  target('target-8000', '9110 4.1', `/pets?q=${'a'.repeat(7_900)}`, [], { ...REFUSED, allowed: '9110 15.5.15' }),
  row(
    'target-absolute',
    '9112 3.2.2',
    (to) => to.head(`GET http://${to.authority}${to.path}/pets HTTP/1.1`),
    { allowed: '9112 3.2.1' },
    ({ request }) => (targetOf(request).startsWith('/') ? allowed('it arrived as a path') : same()),
  ),
  row('target-asterisk', '9112 3.2.4', (to) => to.head('OPTIONS * HTTP/1.1'), {
    allowed: '9110 9.3.7',
    mayRefuse: /^(?:2|405|501)/,
  }),
];

const method = (name: string, rule: string, hasBody: boolean, mayRefuse?: RegExp, id = name.toLowerCase()): Row =>
  row(`method-${id}`, rule, hasBody ? ask(name, [JSON_TYPE], PET) : ask(name), { mayRefuse });
const NOT_IMPLEMENTED = /^(?:405|501)$/;

export const METHODS: Row[] = [
  method('HEAD', '9110 9.3.2', false),
  method('OPTIONS', '9110 9.3.7', false, /^2/),
  method('PUT', '9110 9.3.4', true),
  method('PATCH', '5789 2', true),
  method('DELETE', '9110 9.3.5', false),
  method('QUERY', '9110 9.1', true, NOT_IMPLEMENTED),
  method('PROBE', '9110 9.1', false, NOT_IMPLEMENTED, 'unknown'),
  row('method-get-body', '9110 9.3.1', ask('GET', [JSON_TYPE], PET), { ...REFUSED, own: /^body$/ }, ({ request }) =>
    request.body === '' ? allowed('the body of a GET is removed') : keepsBody(request.body, PET),
  ),
];
