import { testRow } from './row-test.ts';
import { row as row08 } from './rows/08-load.ts';

testRow(row08);
