/** Applies the solution of the exercise that changes the service. To go back: git checkout . */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { applyPatch } from '../../../test/patched.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
applyPatch(root, readFileSync(new URL('delete-pet.patch', import.meta.url), 'utf8'));
