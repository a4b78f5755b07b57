/** The endpoints under `/lab`. All but `reset` concern the key of the request alone. */
import { type Limiter, newAccount, take } from '../../src/access/limiter.ts';
import { DAY_MS, durationMs } from '../../src/clock.ts';
import { limitUpTo, readQuery, refuseParameters } from '../../src/http/edges.ts';
import { ApiError, nothingThere } from '../../src/http/errors.ts';
import { jsonReply, Reply } from '../../src/http/reply.ts';
import { InvalidMembers, Members } from '../../src/json/members.ts';
import { type JsonValue, readJson } from '../../src/json/reader.ts';
import { ENDPOINTS, type Operation } from '../../src/service/routes.ts';
import { type Call, idParam } from '../../src/shop/handler.ts';
import type { ApiKey } from '../../src/store/model.ts';
import { DRILL } from './drill.ts';
import { readFault } from './faults.ts';
import { type CurrentGrade, type KeyState, MAX_REQUESTS } from './history.ts';

const REQUESTS_PER_MINUTE = 600;
/** The most that a key's clock may be ahead in all: ten years. */
const MAX_AHEAD_DAYS = 3_650;
const LIMIT = limitUpTo(MAX_REQUESTS);
const OPERATIONS = ENDPOINTS.map(({ name }) => name);
const NO_CONTENT = new Reply(204, []);

/** The part of the lab that its endpoints use. */
interface Lab {
  stateOf(key: ApiKey): KeyState;
  advance(key: ApiKey, ms: number): Promise<void>;
  reset(key: ApiKey, isKeyAlone: boolean): Promise<void>;
  grade(keyId: number): CurrentGrade;
}

interface LabCall {
  readonly lab: Lab;
  readonly key: ApiKey;
  readonly state: KeyState;
  readonly query: string;
  readonly param: string;
  /** Undefined if none was sent. */
  readonly body: JsonValue | undefined;
}

type WithBody = LabCall & { body: JsonValue };
type Row = [
  method: Operation['method'],
  path: string,
  handler: (call: LabCall) => Reply | Promise<Reply>,
  does: string,
];

// biome-ignore format: a table
export const ENDPOINT_ROWS: readonly Row[] = [
  ['GET', '/lab', bare(describe), 'this table, and what to do first'],
  ['GET', '/lab/clock', bare(readClock), 'how far the clock of this key is ahead'],
  ['POST', '/lab/clock', withBody(advanceClock),
    'lets time pass for this key, such as {"advance": "90s"}; also 5m, 24h, 30d'],
  ['GET', '/lab/faults', bare(({ state }) => reply(200, state.faults.armed)), 'the faults that are armed'],
  ['POST', '/lab/faults', withBody(({ state, body }) => reply(201, state.faults.arm(readFault(body, OPERATIONS)))),
    'arms a fault, such as {"kind": "unavailable", "operation": "listPets", "seconds": 2}'],
  ['DELETE', '/lab/faults', bare(disarmAll), 'disarms all faults'],
  ['DELETE', '/lab/faults/{id}', bare(disarmOne), 'disarms that fault'],
  ['GET', '/lab/requests', listRequests, 'the newest requests of this key (?limit)'],
  ['POST', '/lab/reset', reset, 'begins anew, the shop included; with {"only": "key"} this key alone'],
  ['POST', '/lab/drill', bare(armDrill), 'arms a fixed script of faults, which lets every check of the grade be seen'],
  ['GET', '/lab/grade', bare(readGrade), 'how the client of this key behaved'],
];

const FIRST = [
  'POST /lab/drill arms a script of faults, and replies with its steps.',
  'Let your client list /v1/pets?limit=10 by its Links, add animals and order them, for half a minute.',
  'GET /lab/grade says how it behaved, and what to do for more to be seen.',
];

/** The rows of the route table. Their limiter is their own: a request under `/lab` costs nothing of the plan. */
export function labEndpoints(lab: Lab, now: () => number): Operation[] {
  const limiter = labLimiter(now);
  return ENDPOINT_ROWS.map(([method, path, handle]) => ({
    name: 'lab',
    method,
    path,
    limiter,
    handler({ caller: { key }, query, param, body: bytes }: Call) {
      const body = bytes.length === 0 ? undefined : readJson(bytes);
      return handle({ lab, key, state: lab.stateOf(key), query, param, body });
    },
  }));
}

/** The same limit for every key, counted in this process, and no bans. */
function labLimiter(now: () => number): Pick<Limiter, 'take'> {
  const accounts = new Map<number, ReturnType<typeof newAccount>>();
  const limits = { perMinute: REQUESTS_PER_MINUTE, perDay: 1_440 * REQUESTS_PER_MINUTE };
  const accountOf = (id: number) => accounts.get(id) ?? accounts.set(id, newAccount()).get(id)!;
  return { take: ({ id }) => take(accountOf(id), limits, now(), 0) };
}

const reply = (status: number, value: unknown): Reply => jsonReply(status, JSON.stringify(value));

/** For calls without arguments: the body is absent or `{}`. */
function bare(handler: Row[2]): Row[2] {
  return (call) => {
    refuseParameters(call.query);
    if (call.body !== undefined) new Members(call.body).end();
    return handler(call);
  };
}

function withBody(handler: (call: WithBody) => Reply | Promise<Reply>): Row[2] {
  return (call) => {
    refuseParameters(call.query);
    if (call.body === undefined) throw new ApiError('invalid_json', 'a body is missing: send a JSON object');
    return handler({ ...call, body: call.body });
  };
}

function describe(): Reply {
  return reply(200, { first: FIRST, calls: ENDPOINT_ROWS.map(([method, path, , does]) => ({ method, path, does })) });
}

function readClock({ state }: LabCall): Reply {
  return reply(200, { ahead: state.aheadMs / 1_000 });
}

/** One at a time: two at once might exceed the maximum. */
async function advanceClock(call: WithBody): Promise<Reply> {
  const { lab, key, state } = call;
  const members = new Members(call.body);
  const ms = durationMs(members.text('advance', { min: 1, max: 10 }));
  members.end();
  if (!(ms > 0)) throw new InvalidMembers(['advance: must be a time to let pass, such as "90s", "5m", "24h" or "30d"']);
  const advanced = state.advanced.then(() => {
    const leftMs = MAX_AHEAD_DAYS * DAY_MS - state.aheadMs;
    if (ms <= leftMs) return lab.advance(key, ms);
    const most = `a key's clock may be ${MAX_AHEAD_DAYS}d ahead in all`;
    throw new InvalidMembers([`advance: ${most}; ${leftMs / 1_000}s are left`]);
  });
  state.advanced = advanced.catch(() => {});
  await advanced;
  return readClock(call);
}

function disarmAll({ state }: LabCall): Reply {
  state.faults.disarm();
  return NO_CONTENT;
}

function disarmOne({ state, param }: LabCall): Reply {
  if (!state.faults.disarm(idParam(param))) throw nothingThere();
  return NO_CONTENT;
}

function listRequests({ state, query }: LabCall): Reply {
  const [limit = MAX_REQUESTS] = readQuery(query, [LIMIT]);
  const newest = state.history.ended().reverse().slice(0, limit);
  const shown = newest.map(
    ({ unix, method, target, operation, status, requestId, connection, key = null, fault, ms }) => {
      const at = new Date(unix).toISOString();
      return { at, method, target, operation, status, requestId, connection, idempotencyKey: key, fault, ms };
    },
  );
  return reply(200, shown);
}

async function reset({ lab, key, query, body = new Map() }: LabCall): Promise<Reply> {
  refuseParameters(query);
  const members = new Members(body);
  const isKeyAlone = members.has('only') && members.oneOf('only', ['key']) === 'key';
  members.end();
  await lab.reset(key, isKeyAlone);
  return NO_CONTENT;
}

/** Replaces all armed faults. */
function armDrill({ state }: LabCall): Reply {
  state.faults.disarm();
  for (const { fault } of DRILL) if (fault !== undefined) state.faults.arm(fault);
  return reply(201, { script: DRILL });
}

function readGrade({ lab, key }: LabCall): Reply {
  const { openMs, checks, ...grade } = lab.grade(key.id);
  const seconds = Math.ceil(openMs / 1_000);
  const wait = openMs > 0 ? `a POST that failed may still come again: ask for the grade in ${seconds} s` : '';
  return reply(200, { ...grade, next: [wait, grade.next].filter(Boolean).join('; '), checks });
}
