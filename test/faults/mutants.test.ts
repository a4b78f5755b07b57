import { testRow } from './row-test.ts';
import { row as row11 } from './rows/11-mutants.ts';

testRow(row11);
