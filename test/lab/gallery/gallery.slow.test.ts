/** Every client of the gallery gets the grade it deserves, for what it deserves it. */
import { describe, it } from 'node:test';
import { GivenUp } from './client.ts';
import { GALLERY } from './gallery.ts';
import { tryOut } from './trial.ts';

describe('the gallery', { concurrency: 6 }, () => {
  for (const one of GALLERY) {
    it(`${one.name}: ${one.grade}`, async (t) => {
      await tryOut(t, one).catch((error) => (error instanceof GivenUp ? t.skip(error.message) : Promise.reject(error)));
    });
  }
});
