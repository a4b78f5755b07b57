import { testRow } from './row-test.ts';
import { row as row10 } from './rows/10-crash-states.ts';

testRow(row10);
