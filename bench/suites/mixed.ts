/** What a day looks like: seven in ten requests list, two get one, one adds. Every addition makes pages new. */
import { deepStrictEqual } from 'node:assert/strict';
import { animals } from '../animals.ts';
import type { Bench } from '../bench.ts';
import { atRate, contest } from '../contest.ts';
import type { Call } from '../load.ts';
import { ANIMALS, get, post, RARE_EVERY, takeTheField } from '../subjects.ts';

const CONNECTIONS = 32;
const PER_SECOND = 2_000;
const CALLS = 1_000;
/** Shares no factor with the number of calls: spreads the kinds evenly without chance. */
const STEP = 377;

export function mixedCalls(key: string): Call[] {
  const list = ['/v1/pets?limit=20', '/v1/pets?limit=20&status=available', '/v1/pets?limit=50', '/v1/pets'];
  const calls = Array.from({ length: CALLS }, (_, i) => {
    const place = (i * STEP) % CALLS;
    if (place < 0.7 * CALLS) return get(list[place % list.length], key);
    if (place < 0.9 * CALLS) return get(`/v1/pets/${(place % ANIMALS) + 1}`, key);
    return post('/v1/pets', key, { name: `Rex ${place}`, categoryId: place % 9 });
  });
  return calls;
}

export async function mixed(bench: Bench): Promise<void> {
  const field = await takeTheField(bench, {
    calls: mixedCalls,
    look: (value) => deepStrictEqual(value, animals(20, RARE_EVERY)),
    peers: [],
    asides: ['fastify'],
  });
  const [service, , ...peers] = field.subjects;
  await contest(bench, 'mixed', CONNECTIONS, [service, ...peers]);
  for (const subject of [service, ...peers]) {
    await atRate(bench, 'mixed', subject, {
      perSecond: PER_SECOND,
      connections: CONNECTIONS,
      seconds: 2 * bench.seconds,
    });
  }
  await field.stop();
}
