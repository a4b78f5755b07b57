/** Some of the gallery, quickly; all of it is in the slow tests. */
import { describe, it } from 'node:test';
import { GALLERY } from './gallery.ts';
import { tryOut } from './trial.ts';

describe('some clients of the gallery get the grade they deserve', { concurrency: true }, () => {
  for (const one of GALLERY.filter(({ isQuick }) => isQuick)) it(`${one.name}: ${one.grade}`, (t) => tryOut(t, one));
});
