import { testRows } from './rows.ts';

testRows(4, 6);
