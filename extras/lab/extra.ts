/**
 * The lab, for trying clients: faults, a record of requests, a clock and a grade for each key. Without `--lab` nothing of
 * this folder but this file is loaded.
 */
import * as v from 'valibot';
import type { Extra } from '../../src/extra.ts';
import { command, procedure } from '../../src/operator/command.ts';
import { choice, flag, option, pick } from '../../src/operator/options.ts';

const commands = () => import('./commands.ts');

const options = { lab: flag('serve /lab, to try clients with faults and time (needs --environment staging)') };

export const lab: Extra = {
  options,
  misfit: ({ lab, environment }) =>
    lab && environment !== 'staging' ? '--lab needs --environment staging' : undefined,
  serve: async (opening) => (opening.settings.lab ? (await commands()).openLab(opening) : undefined),
  commands: [
    command('lab', 'try a client: the service with its lab, the built-in example and a key', {
      more: 'Its store is in a directory of its own, removed at the end. It prints the key and the lines to type next.',
      options: pick('port'),
      run: async ({ port }, { program }) => (await commands()).serveLab(port, program),
    }),
    command('grade', 'grade the client of a key; exit 1 if the grade is lower than wanted', {
      more: `Asks the server that runs with --lab. If a failed POST may still come again, the command waits for it, 2 \
minutes at most. Exit 5 if too little was seen for a grade.`,
      options: {
        ...pick('id'),
        atLeast: option(v.optional(choice(['A', 'B', 'C', 'D'])), 'GRADE', 'lowest grade that is good enough'),
      },
      access: 'read',
      procedure: procedure(pick('id'), async (context, { id }) => (await commands()).gradeOf(context, id)),
      run: async (values, here) => (await commands()).printGrade(values, here),
    }),
  ],
};
