import { testRows } from './rows.ts';

testRows(8);
