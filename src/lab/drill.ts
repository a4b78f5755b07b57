/** The drill: a fixed script of faults, by which a client that lists, pages, adds and orders meets every check. */
import type { NewFault } from './faults.ts';

/** No more than 2 seconds: a connection outlives that wait, also if its client closes idle ones early. */
const TOLD_SECONDS = 2;
const ROW_OF_FAILURES = 5;
/** A client that forgets POSTs after one of these failures alone is to forget more than one in five. */
const TWICE = 2;
const LONGER = 'Ask again, and wait longer each time.';
const SAME_KEY = 'Send it again under the same Idempotency-Key.';

/** The failure, the behaviour of a good client, and the checks that see it; the fault, if one is needed. */
type Step = [does: string, right: string, checks: string, fault?: Partial<NewFault> & Pick<NewFault, 'kind'>];

const list = { operation: 'listPets' };
const add = { operation: 'createPet' };
const order = { operation: 'createOrder' };

// biome-ignore format: a table
const STEPS: readonly Step[] = [
  [`The second GET /v1/pets gets 503 with Retry-After: ${TOLD_SECONDS}.`, 'Wait so long, then ask again.',
    'retry_after', { kind: 'unavailable', ...list, skip: 1, seconds: TOLD_SECONDS }],
  [`A later one gets no reply, ${ROW_OF_FAILURES} times in a row.`, LONGER,
    'backoff', { kind: 'drop_before', ...list, skip: 2, times: ROW_OF_FAILURES }],
  ['A later one breaks off in the middle.', 'Ask again for all of it.',
    '', { kind: 'truncate', ...list, skip: 3 }],
  [`A later one gets 502, ${ROW_OF_FAILURES} times in a row.`, LONGER,
    'backoff', { kind: 'status', ...list, skip: 5, times: ROW_OF_FAILURES, status: 502 }],
  ['A later one drips in for a second.', 'Have patience.',
    '', { kind: 'drip', ...list, skip: 6, ms: 1_000 }],
  ['The first POST /v1/pets is done, but its reply is lost.', SAME_KEY,
    'idempotency finished', { kind: 'drop_after', ...add }],
  [`The second gets 503 with Retry-After: ${TOLD_SECONDS}, twice.`, `Wait so long. ${SAME_KEY}`,
    'retry_after idempotency finished', { kind: 'unavailable', ...add, skip: 1, times: TWICE, seconds: TOLD_SECONDS }],
  [`The third gets 429 with Retry-After: ${TOLD_SECONDS}, twice.`, `Wait so long with all requests. ${SAME_KEY}`,
    'retry_after finished', { kind: 'status', ...add, skip: 2, times: TWICE, status: 429, seconds: TOLD_SECONDS }],
  ['The first POST /v1/store/orders is placed, but its reply is lost.', `${SAME_KEY} Under a new one it is refused.`,
    'idempotency finished', { kind: 'drop_after', ...order }],
  ['The second gets 500, twice.', SAME_KEY,
    'idempotency finished', { kind: 'status', ...order, skip: 1, times: TWICE, status: 500 }],
  ['Lists have more than a page: GET /v1/pets?limit=10.', 'Follow the Links to the last page, on few connections.',
    'paging redundant reuse'],
  ['An order for an animal that does not exist, such as 9007199254740991, gets 400.', 'Go on with something else.',
    'hopeless'],
  ['With eight connections or more a limit refuses them together.', 'Come back spread out.',
    'herd'],
];

export const DRILL = STEPS.map(([does, right, checks, fault], at) => ({
  ...{ step: at + 1, does, right, checks: checks.split(' ').filter(Boolean) },
  fault: fault && { operation: undefined, times: 1, skip: 0, ...fault },
}));
