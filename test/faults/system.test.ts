import { testRows } from './rows.ts';

testRows(4, 5, 6);
