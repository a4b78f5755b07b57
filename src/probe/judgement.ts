/** The laws that hold in every case, beside its own expectation. */
import { keepsAll, keepsRequest } from './kept.ts';
import { allowed, breaks, type Judgement, type Row, type Seen } from './row.ts';
import { headerOf, type Message, markOf, methodOf, shown, statusOf } from './wire.ts';

/** The rule for parts of a message that no case names: a gateway may not change them either. */
const UNCHANGED = '9110 7.7';

export const times = (count: number): string => ['never', 'once', 'twice'][count] ?? `${count} times`;
const nameOf = (reply: Message) => statusOf(reply) || shown(reply.line);
export const inPlace = (reply: Message, of: string): Judgement => breaks(`${nameOf(reply)} came in place of ${of}`);

/** The words for a reply that did not come whole, and for the end of its connection. */
export function nothing({ talks: [{ ended, rest }] }: Seen): string {
  const code = ended === 'closed' ? '' : ` (${ended})`;
  const told =
    ended === undefined ? 'no whole reply came in time' : `the connection ended${code} without a whole reply`;
  return rest === '' ? told : `${told}; the bytes that came: ${shown(rest)}`;
}

const isSafeAgain = (request: Message) => /^(?:GET|HEAD|OPTIONS|PUT|DELETE|QUERY)$/.test(methodOf(request));

export function judge(row: Row, seen: Seen): Judgement {
  const without = foreign(row, seen) ?? notReached(seen) ?? (row.isAmbiguous ? undefined : beforehand(row, seen));
  if (without !== undefined) return without;
  const judged = [row.expect(seen), ...keptIn(row, seen), ...repeated(row, seen), ...surplus(row, seen)];
  return (
    judged.find(({ verdict }) => verdict === 'breaks') ??
    judged.find(({ verdict }) => verdict === 'allowed') ??
    judged[0]
  );
}

/** The reply to one request may not come to another, be it mixed up or kept: each has an Authorization of its own. */
function foreign({ asksAlike }: Row, { pairs, to }: Seen): Judgement | undefined {
  const strays = pairs.filter(({ sent, reply }) => {
    const mark = reply && markOf(reply);
    return mark !== undefined && mark !== markOf(sent) && mark !== to.token;
  });
  if (strays.length === 0) return undefined;
  if (!asksAlike) return breaks('the reply to another request came', '9112 9.3.2');
  const keyOf = ({ sent }: Seen['pairs'][number]) => headerOf(sent, 'authorization');
  const isOthers = strays.some((stray) => keyOf(stray) !== keyOf(pairs[0]));
  return breaks(`the gateway keeps the reply, and gives it to ${isOthers ? 'another key' : 'the next request'}`);
}

function notReached(seen: Seen): Judgement | undefined {
  const { arrived, came, talks } = seen;
  if (arrived.length + came.length === 0) return breaks(`not reached: nothing arrived, and ${nothing(seen)}`);
  const silent = talks.filter(({ replies }) => replies.length === 0).length;
  const isMissing = silent > 0 && arrived.length < silent;
  return isMissing ? breaks(`not reached: on ${silent} of ${talks.length} connections nothing came`) : undefined;
}

/** Undefined if each request arrived whole and was answered by the origin; in raw rows only the first must be. */
function beforehand({ mayRefuse, isRaw }: Row, seen: Seen): Judgement | undefined {
  const faults = [...new Set(seen.arrived.flatMap((one) => one.faults))];
  for (const { arrival, reply } of isRaw ? [{ arrival: seen.request, reply: seen.reply }] : seen.pairs) {
    const status = arrival?.answered && statusOf(arrival.answered);
    const isOwn = reply !== undefined && markOf(reply) === undefined && statusOf(reply) !== status;
    if (isOwn && (!isRaw || arrival === undefined)) {
      const told = `the gateway itself answers ${nameOf(reply)}`; // how much had arrived by then is chance
      return !arrival?.isWhole && mayRefuse?.test(String(statusOf(reply))) ? allowed(told) : breaks(told);
    }
    if (arrival === undefined) return breaks(`it did not arrive, and ${nothing(seen)}`);
    if (faults.length > 0) return breaks(`it arrived with ${faults.join(', ')}`, '9112 11.2');
    if (isRaw) return undefined;
    if (!arrival.isWhole) return breaks('not all of it arrived');
    if (reply === undefined) return breaks(`it arrived, but ${nothing(seen)}`);
    if (statusOf(reply) !== status) return inPlace(reply, `the origin's ${status}`);
    if (!reply.isWhole) return breaks(nothing(seen));
  }
}

/** Compares each request and reply with the sent one. A change breaks the case's own rule, if that is about its end. */
function keptIn({ isAmbiguous, answer, rule, own, may }: Row, { arrived, finals, pairs, to }: Seen): Judgement[] {
  const [isOfRequest, isOfReply] = [answer === undefined, answer !== undefined];
  const by = (isOwn: boolean, judged: Judgement): Judgement =>
    judged.verdict === 'breaks' ? { ...judged, rule: isOwn ? rule : UNCHANGED } : judged;
  const sentAs = (mark?: string) => (pairs.find(({ sent }) => markOf(sent) === mark) ?? pairs[0]).sent;
  const requests = isAmbiguous ? [] : arrived;
  const replies = pairs.flatMap(({ sent, arrival, reply }) => {
    if (reply === undefined || arrival?.answered === undefined) return [];
    const isOrigins = markOf(reply) !== undefined || statusOf(reply) === statusOf(arrival.answered);
    if (!isOrigins) return [];
    const judged = keepsAll(arrival.answered, reply, isOfReply ? own : undefined, methodOf(sent) === 'HEAD');
    return [by(isOfReply, judged)];
  });
  return [
    ...requests.map((one) => {
      const judged = keepsRequest(sentAs(markOf(one)), one, to.token, may, isOfRequest ? own : undefined);
      return by(isOfRequest, judged);
    }),
    ...replies,
    ...finals.flatMap(({ faults }) => faults.map((fault) => breaks(`the reply came with ${fault}`, '9112 11.1'))),
  ];
}

function repeated({ isCounted, isAmbiguous }: Row, { arrived, pairs, talks }: Seen): Judgement[] {
  const sent = isAmbiguous ? talks.length : pairs.length;
  if (isCounted || arrived.length <= sent) return [];
  const told = sent === 1 ? `it arrived ${times(arrived.length)}` : `${sent} requests arrived as ${arrived.length}`;
  if (isSafeAgain(arrived[0])) return [allowed(`${told}, and a service charges it so often`, '9110 9.2.2')];
  return [breaks(`${told}: a service does it again`, '9110 9.2.2')];
}

/** Bytes behind the last reply are taken for the reply to the next request, which may be another client's. */
function surplus({ isAmbiguous }: Row, { talks }: Seen): Judgement[] {
  const texts = talks.map((talk) => talk.surplus(isAmbiguous ? 1 : talk.requests.length)).filter((text) => text !== '');
  return texts.map((text) =>
    breaks(`${text.length} bytes came behind the reply: ${shown(text) || 'an empty line'}`, '9112 6.3'),
  );
}
