/** What a case has come to, and what is looked at in every case before its own expectation. */
import type { Judgement, Row, Seen } from './row.ts';
import { headerOf, linesOf, type Message, methodOf, shown, statusOf } from './wire.ts';

export const same = (why = ''): Judgement => ({ verdict: 'same', why });
/** A change that the RFC allows; `why` also says whom it may surprise. */
export const allowed = (why: string, rule?: string): Judgement => ({ verdict: 'allowed', why, rule });
/** One that it does not, or that harms a client or a service; `why` says how. */
export const breaks = (why: string, rule?: string): Judgement => ({ verdict: 'breaks', why, rule });

export const times = (count: number): string => ['never', 'once', 'twice'][count] ?? `${count} times`;
export const inPlace = (reply: Message, of: string): Judgement => breaks(`${statusOf(reply)} came in place of ${of}`);

/** Whether each of these lines is there once, with its value. */
export function keeps(message: Message, lines: string[]): Judgement {
  for (const line of lines) {
    const [name, value] = line.split(/: ?(.*)/s);
    const values = linesOf(message, name);
    if (values.length === 0) return breaks(`${name} is gone`);
    if (values.length > 1 || values[0] !== value) return breaks(`${name} is ${shown(values.join(' and '))}`);
  }
  return same();
}

export const keepsBody = (found: string, sent: string): Judgement =>
  found === sent ? same() : breaks(`it has another body, of ${found.length} bytes in place of ${sent.length}`);

const isSafeAgain = (request: Message) => /^(?:GET|HEAD|OPTIONS|PUT|DELETE|QUERY)$/.test(methodOf(request));

export function judge(row: Row, seen: Seen): Judgement {
  const { arrived, came, to } = seen;
  const isOurs = came.every((one) => [undefined, to.token].includes(headerOf(one, 'x-probe')));
  if (!isOurs) return breaks('the reply to another request came', '9112 9.3.2');
  if (row.isRaw) return row.expect(seen);
  const judged = beforehand(row, seen) ?? row.expect(seen);
  if (judged.verdict !== 'same' || arrived.length === 1) return judged;
  return allowed(`it arrived ${times(arrived.length)}, and a service charges it so often`, '9110 9.2.2');
}

/** Undefined where the request has arrived whole, and the origin's reply has come. */
function beforehand({ mayRefuse }: Row, { arrived, request, reply, ended }: Seen): Judgement | undefined {
  const status = reply && statusOf(reply);
  if (reply !== undefined && headerOf(reply, 'x-probe') === undefined && status !== request?.status) {
    const told = `the gateway itself answers ${status}`; // whether something had arrived by then is chance
    return request === undefined && mayRefuse?.test(String(status)) ? allowed(told) : breaks(told);
  }
  const nothing = ended === undefined ? 'no whole reply came in time' : 'the connection ended without a whole reply';
  if (request === undefined) return breaks(`it did not arrive, and ${nothing}`);
  if (request.faults.length > 0) return breaks(`it arrived with ${request.faults.join(', ')}`, '9112 11.2');
  if (!request.isWhole) return breaks('not all of it arrived');
  if (arrived.length > 1 && !isSafeAgain(request)) {
    return breaks(`it arrived ${times(arrived.length)}: what it asks for is done again`, '9110 9.2.2');
  }
  if (reply === undefined) return breaks(`it arrived, but ${nothing}`);
  if (status !== request.status) return inPlace(reply, `the origin's ${request.status}`);
  return reply.isWhole ? undefined : breaks(nothing);
}
