/** A fixed script of faults: a client that lists, pages, adds and orders for a minute can then have met every check. */
import type { NewFault } from './faults.ts';

export const DRILL: readonly NewFault[] = [
  { kind: 'unavailable', operation: 'listPets', times: 2, skip: 1, seconds: 1 },
  { kind: 'truncate', operation: 'listPets', times: 1, skip: 2 },
  { kind: 'drop_before', operation: 'listPets', times: 3, skip: 4 },
  { kind: 'drip', operation: 'listPets', times: 1, skip: 6, ms: 1_000 },
  { kind: 'drop_after', operation: 'createPet', times: 1, skip: 0 },
  { kind: 'unavailable', operation: 'createPet', times: 1, skip: 2, seconds: 1 },
  { kind: 'drop_after', operation: 'createOrder', times: 1, skip: 0 },
  { kind: 'delay', operation: 'createOrder', times: 1, skip: 0, ms: 1_000 },
];

/** Those faults in the same order and how a good client takes them, then what no fault is needed for. */
export const DRILL_IN_WORDS: readonly string[] = [
  'GET /v1/pets: the second one, and the try after it, get 503 with Retry-After. Wait as told. [retry_after]',
  'A later one breaks off in the middle. Ask again.',
  'Then three get no reply. Wait longer each time. [backoff]',
  'Then one drips in for a second. Have patience.',
  'POST /v1/pets: the first is done, its reply is lost. Send it again under the same Idempotency-Key. [idempotency]',
  'A later one gets 503. Wait as told, and send it again under the same Idempotency-Key.',
  'POST /v1/store/orders: the first is placed, but its reply is lost. Under a new key it would be refused.',
  'The reply to the next one takes a second. Have patience.',
  'Follow the Links of GET /v1/pets?limit=10 to the last page, on few connections. [paging, redundant, reuse]',
  'Order an animal that does not exist, such as 9007199254740991: a 400, which asking again does not mend. [hopeless]',
  'Use eight connections or more until a limit refuses them, and come back spread out. [herd]',
  'Leave GET /v1/pets/{petId} alone, and send nothing more while a 429 tells you to wait. [deprecated, ban]',
];
