/** The endpoints under `/lab`, one row each. All but `reset` concern the key of the request alone. */
import { DAY_MS, durationMs } from '../clock.ts';
import type { Engine } from '../engine.ts';
import { ApiError, nothingThere } from '../http/errors.ts';
import { jsonReply, NO_CONTENT, type Reply } from '../http/reply.ts';
import { Query, refuseParameters } from '../http/request.ts';
import { InvalidMembers, Members } from '../json/members.ts';
import type { JsonValue } from '../json/reader.ts';
import { ENDPOINTS } from '../routes.ts';
import type { ApiKey } from '../store/model.ts';
import { DRILL } from './drill.ts';
import { readFault } from './faults.ts';
import type { Grade } from './grade.ts';
import { type KeyState, MAX_REQUESTS } from './histories.ts';
import { clockAdvanceOf } from './recorder.ts';
import { shown } from './tries.ts';

const ENDPOINT_NAMES = ENDPOINTS.map(({ name }) => name);
/** The most that a key's clock may be ahead in all: ten years. */
const MAX_AHEAD_DAYS = 3_650;

export type Content = NonNullable<Parameters<Engine['reset']>[1]>;

/** The lab, as its calls see it. */
interface Place {
  readonly engine: Engine;
  /** The content of the store after `reset`: this start's `--seed`. */
  readonly content: Content;
  /** Forgets the recorded requests of a key, and its faults. */
  forget(key: ApiKey): void;
  grade(id: string): Grade & { openMs: number };
}

interface LabCall {
  lab: Place;
  key: ApiKey;
  state: KeyState;
  query: string;
  /** The last segment of the path, if it is a parameter. */
  param: string | undefined;
  /** Undefined if none was sent. */
  body: JsonValue | undefined;
}

type WithBody = LabCall & { body: JsonValue };
export type LabHandler = (call: LabCall) => Reply | Promise<Reply>;

type Handlers = Readonly<Record<string, LabHandler>>;

interface Row {
  path: string;
  handlers: Handlers;
  /** By method: the text for `GET /lab`. */
  does: Readonly<Record<string, string>>;
}

// biome-ignore format: a table
export const LAB_CALLS: readonly Row[] = [
  { path: '/lab', handlers: { GET: bare(describe) }, does: { GET: 'this table, and what to do first' } },
  { path: '/lab/clock', handlers: { GET: bare(readClock), POST: withBody(advanceClock) }, does: {
    GET: 'how far the clock of this key is ahead',
    POST: 'lets time pass for this key, such as {"advance": "90s"}; also 5m, 24h, 30d' } },
  { path: '/lab/faults',
    handlers: { GET: bare(listFaults), POST: withBody(armFault), DELETE: bare(disarmFaults) }, does: {
    GET: 'the faults that are armed',
    POST: 'arms a fault, such as {"kind": "unavailable", "operation": "listPets", "seconds": 2}',
    DELETE: 'disarms all faults' } },
  { path: '/lab/faults/{id}', handlers: { DELETE: bare(disarmFaults) }, does: { DELETE: 'disarms that fault' } },
  { path: '/lab/requests', handlers: { GET: listRequests }, does: {
    GET: 'the newest requests of this key (?limit)' } },
  { path: '/lab/reset', handlers: { POST: reset }, does: {
    POST: 'begins anew, the shop included; with {"only": "key"} this key alone' } },
  { path: '/lab/drill', handlers: { POST: bare(armDrill) }, does: {
    POST: 'arms a fixed script of faults, which lets every check of the grade be seen' } },
  { path: '/lab/grade', handlers: { GET: bare(readGrade) }, does: { GET: 'how the client of this key behaved' } },
];

const FIRST = [
  'POST /lab/drill arms a script of faults, and replies with its steps.',
  'Let your client list /v1/pets?limit=10 by its Links, add animals and order them, for half a minute.',
  'GET /lab/grade tells how it behaved, and what to do for more to be seen.',
];

export function placeOf(path: string): { handlers: Handlers; param?: string } | undefined {
  const row = LAB_CALLS.find((one) => one.path === path);
  if (row !== undefined) return row;
  const [, param] = /^\/lab\/faults\/([1-9]\d{0,9})$/.exec(path) ?? [];
  const { handlers } = LAB_CALLS.find((one) => one.path.endsWith('{id}')) as Row;
  return param === undefined ? undefined : { handlers, param };
}

function describe(): Reply {
  const calls = LAB_CALLS.flatMap(({ path, does }) =>
    Object.entries(does).map(([method, text]) => [method, path, text]),
  );
  return reply(200, { first: FIRST, calls: calls.map(([method, path, does]) => ({ method, path, does })) });
}

/** For requests without arguments: the body is absent or `{}`. */
function bare(handler: LabHandler): LabHandler {
  return (call) => {
    refuseParameters(call.query);
    if (call.body !== undefined) new Members(call.body).end();
    return handler(call);
  };
}

function withBody(handler: (call: WithBody) => Reply | Promise<Reply>): LabHandler {
  return (call) => {
    refuseParameters(call.query);
    if (call.body === undefined) throw new ApiError('invalid_json', 'a body is missing: send a JSON object');
    return handler({ ...call, body: call.body });
  };
}

const reply = (status: number, value: unknown): Reply => jsonReply(status, JSON.stringify(value));

function readClock({ lab, key }: LabCall): Reply {
  return reply(200, { ahead: clockAdvanceOf(lab.engine.store.read, key) / 1_000 });
}

/** Advances wait for each other: two at once might exceed the most that is allowed. */
async function advanceClock(call: WithBody): Promise<Reply> {
  const { lab, key, state } = call;
  const members = new Members(call.body);
  const text = members.text('advance', { min: 1, max: 10 });
  members.end();
  const ms = durationMs(text);
  if (!(ms > 0)) throw new InvalidMembers(['advance: must be a time to let pass, such as "90s", "5m", "24h" or "30d"']);
  const turn = state.clockTurn.then(() => {
    const leftMs = MAX_AHEAD_DAYS * DAY_MS - clockAdvanceOf(lab.engine.store.read, key);
    if (ms <= leftMs) return lab.engine.advance(key, ms);
    const most = `a key's clock may be ${MAX_AHEAD_DAYS}d ahead in all`;
    throw new InvalidMembers([`advance: ${most}; ${leftMs / 1_000}s are left`]);
  });
  state.clockTurn = turn.catch(() => {});
  await turn;
  return readClock(call);
}

function listFaults({ state }: LabCall): Reply {
  return reply(200, state.faults.armed);
}

function armFault({ state, body }: WithBody): Reply {
  const [fault] = state.faults.arm([readFault(body, ENDPOINT_NAMES)]);
  return reply(201, fault);
}

function disarmFaults({ state, param }: LabCall): Reply {
  const wasThere = state.faults.disarm(param === undefined ? undefined : Number(param));
  if (param !== undefined && !wasThere) throw nothingThere();
  return NO_CONTENT;
}

function listRequests({ state, query }: LabCall): Reply {
  const parameters = new Query(query, ['limit']);
  const limit = parameters.readLimit(MAX_REQUESTS, MAX_REQUESTS);
  parameters.end();
  return reply(200, shown(state.history.ended(), limit));
}

async function reset({ lab, key, query, body }: LabCall): Promise<Reply> {
  refuseParameters(query);
  const members = new Members(body ?? new Map());
  const isKeyAlone = body instanceof Map && body.has('only') && members.oneOf('only', ['key']) === 'key';
  members.end();
  await lab.engine.reset(key, isKeyAlone ? undefined : lab.content);
  lab.forget(key);
  return NO_CONTENT;
}

/** Replaces all armed faults. */
function armDrill({ state }: LabCall): Reply {
  state.faults.disarm();
  state.faults.arm(DRILL.flatMap(({ fault }) => fault ?? []));
  return reply(201, { script: DRILL });
}

function readGrade({ lab, key }: LabCall): Reply {
  const { openMs, checks, ...grade } = lab.grade(key.id);
  const seconds = Math.ceil(openMs / 1_000);
  const wait = openMs > 0 ? `a POST that failed may still come again: ask for the grade in ${seconds} s` : '';
  return reply(200, { ...grade, next: [wait, grade.next].filter(Boolean).join('; '), checks });
}
