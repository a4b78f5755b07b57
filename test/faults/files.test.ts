import { testRows } from './rows.ts';

testRows(1, 2, 3, 10, 12);
