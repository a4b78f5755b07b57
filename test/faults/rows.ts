import type { Row } from './row.ts';
import { row as cut } from './rows/01-cut.ts';
import { row as flip } from './rows/02-flip.ts';
import { row as sectors } from './rows/03-sectors.ts';
import { row as kill } from './rows/04-kill.ts';
import { row as sync } from './rows/05-sync.ts';
import { row as full } from './rows/06-full.ts';
import { row as slow } from './rows/07-slow.ts';
import { row as load } from './rows/08-load.ts';
import { row as lock } from './rows/09-lock.ts';
import { row as crashStates } from './rows/10-crash-states.ts';
import { row as mutants } from './rows/11-mutants.ts';
import { row as damages } from './rows/12-damages.ts';

export const ROWS: Row[] = [cut, flip, sectors, kill, sync, full, slow, load, lock, crashStates, mutants, damages];
