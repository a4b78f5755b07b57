import { testRow } from './row-test.ts';
import { row as row04 } from './rows/04-kill.ts';
import { row as row05 } from './rows/05-sync.ts';
import { row as row06 } from './rows/06-full.ts';
import { row as row07 } from './rows/07-slow.ts';
import { row as row09 } from './rows/09-lock.ts';

testRow(row04);
testRow(row05);
testRow(row06);
testRow(row07);
testRow(row09);
