/** The commands of a program with the lab alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandsWith } from '../../../src/operator/commands.ts';
import { checkHelp, refusalOf } from '../../../test/operator/commands.ts';
import { lab } from '../extra.ts';

const COMMANDS = commandsWith([lab]);

test('help names its commands and its option; what does not fit is refused', () => {
  checkHelp(COMMANDS);
  for (const [name, line, fault] of [
    ['serve', '--lab', /--lab needs --environment staging/],
    ['serve', '--lab --environment production', /--lab needs --environment staging/],
    ['grade', 'k1 --at-least E', /--at-least cannot be "E": give A, B, C or D/],
    ['grade', '', /ID is missing/],
  ] as const) {
    const command = COMMANDS.find((one) => one.name === name)!;
    assert.match(refusalOf(command, line === '' ? [] : line.split(' ')), fault);
  }
});
