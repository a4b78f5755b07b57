import { GALLERY } from './gallery.ts';
import { tryAll } from './trial.ts';

tryAll('every client of the gallery gets the grade it deserves, for what it deserves it', GALLERY);
