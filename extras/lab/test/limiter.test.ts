/** The account of a key whose clock is advanced is the one that it would have if so much time had passed. */
import { it } from 'node:test';
import { lifted } from '../../../src/access/limiter.ts';
import { checkAgainstModel } from '../../../test/access/limiter-model.ts';
import { advanced } from '../lab.ts';

it('an account that is advanced is decided on as the model says', (t) =>
  checkAgainstModel(t, { lift: lifted, advance: advanced }));
