/** What can be asked under `/lab`, one row each: everything is about the key that asks, `reset` aside. */
import { DAY_MS } from '../access/limits.ts';
import { durationMs } from '../clock.ts';
import type { Engine } from '../engine.ts';
import { ApiError } from '../http/errors.ts';
import { jsonReply, NO_CONTENT, type Reply } from '../http/reply.ts';
import { Query, refuseParameters } from '../http/request.ts';
import { InvalidMembers, Members } from '../json/members.ts';
import type { JsonValue } from '../json/reader.ts';
import { ENDPOINTS } from '../routes.ts';
import type { ApiKey } from '../store/model.ts';
import { DRILL, DRILL_IN_WORDS } from './drill.ts';
import { readFault } from './faults.ts';
import { type KeyState, MAX_REQUESTS } from './record.ts';
import { shown } from './recorded.ts';
import { aheadMs } from './recorder.ts';

const ENDPOINT_NAMES = ENDPOINTS.map(({ name }) => name);
/** How far a key's clock may be ahead in all: ten years. */
const MAX_AHEAD_DAYS = 3_650;

export type Content = Parameters<Engine['reset']>[1];

/** What the calls are about. */
interface Place {
  readonly engine: Engine;
  /** What `reset` makes of the store: this start's `--seed`. */
  readonly content: Content;
  /** Forgets what was recorded of a key, and what was to go wrong with it. */
  forget(key: ApiKey): void;
}

interface LabCall {
  lab: Place;
  key: ApiKey;
  state: KeyState;
  query: string;
  /** Undefined where none was sent. */
  body: JsonValue | undefined;
}

type WithBody = LabCall & { body: JsonValue };
export type LabHandler = (call: LabCall) => Reply | Promise<Reply>;

export const LAB_CALLS: ReadonlyMap<string, Record<string, LabHandler>> = new Map<string, Record<string, LabHandler>>([
  ['/lab/clock', { GET: bare(readClock), POST: withBody(advanceClock) }],
  ['/lab/faults', { GET: bare(listFaults), POST: withBody(armFault), DELETE: bare(disarmFaults) }],
  ['/lab/requests', { GET: listRequests }],
  ['/lab/reset', { POST: bare(reset) }],
  ['/lab/drill', { POST: bare(armDrill) }],
  ['/lab/grade', { GET: bare(readGrade) }],
]);

/** A request says all that it has to say by its path: a body is left out or `{}`. */
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
  return reply(200, { ahead: aheadMs(lab.engine.store.read, key) / 1_000 });
}

/** One after the other: two at once might pass the most that is allowed. */
async function advanceClock(call: WithBody): Promise<Reply> {
  const { lab, key, state } = call;
  const members = new Members(call.body);
  const text = members.text('advance', { min: 1, max: 10 });
  members.end();
  const ms = durationMs(text);
  if (!(ms > 0)) throw new InvalidMembers(['advance: must be a time to let pass, such as "90s", "5m", "24h" or "30d"']);
  const turn = state.clockTurn.then(() => {
    const leftMs = MAX_AHEAD_DAYS * DAY_MS - aheadMs(lab.engine.store.read, key);
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

function disarmFaults({ state }: LabCall): Reply {
  state.faults.armed = [];
  return NO_CONTENT;
}

function listRequests({ state, query }: LabCall): Reply {
  const parameters = new Query(query, ['limit']);
  const limit = parameters.readLimit(MAX_REQUESTS, MAX_REQUESTS);
  parameters.end();
  return reply(200, state.record.newest(limit).map(shown));
}

async function reset({ lab, key }: LabCall): Promise<Reply> {
  await lab.engine.reset(key, lab.content);
  lab.forget(key);
  return NO_CONTENT;
}

function armDrill({ state }: LabCall): Reply {
  state.faults.arm(DRILL);
  return reply(201, { script: DRILL_IN_WORDS });
}

function readGrade({ state }: LabCall): Reply {
  return reply(200, state.record.grade());
}
