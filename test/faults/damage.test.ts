import { testRow } from './row-test.ts';
import { row as row01 } from './rows/01-cut.ts';
import { row as row02 } from './rows/02-flip.ts';
import { row as row03 } from './rows/03-sectors.ts';
import { row as row12 } from './rows/12-damages.ts';

testRow(row01);
testRow(row02);
testRow(row03);
testRow(row12);
