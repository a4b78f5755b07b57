/**
 * The lab, for trying clients: faults, a record of requests, a clock and a grade for each key. Without `--lab` nothing of
 * this folder but this file is loaded.
 */
import type { Extra } from '../../src/extra.ts';
import { command } from '../../src/operator/command.ts';
import { flag, oneOf, optional, pick, STORE } from '../../src/operator/options.ts';

const commands = () => import('./commands.ts');

export const lab: Extra = {
  options: { lab: flag('serve /lab, to try clients with faults and time (needs --environment staging)') },
  check: ({ lab, environment }, given) =>
    lab && environment !== 'staging' ? `${given('lab')} needs --environment staging` : undefined,
  serve: async (opening) => (opening.settings.lab ? (await commands()).openLab(opening) : undefined),
  commands: [
    command({
      name: 'lab',
      summary: 'try a client: the service with its lab, the built-in example and a key',
      details:
        'Its store is in a directory of its own, removed at the end. It prints the key and the lines to type next.',
      options: pick('port'),
      isServer: true,
      run: async (values, _, program) => (await commands()).serveLab(values, program),
    }),
    command({
      name: 'grade',
      summary: 'grade the client of a key; exit 1 if the grade is lower than wanted',
      details: `Asks the server that runs with --lab. If a failed POST may still come again, the command waits for it, 2 \
minutes at most. Exit 5 if too little was seen for a grade.`,
      args: pick('id'),
      options: {
        atLeast: optional(oneOf(['A', 'B', 'C', 'D']), 'GRADE', 'lowest grade that is good enough'),
        ...STORE,
        ...pick('json'),
      },
      access: 'read',
      work: async (context, { id }: { id: string }) => (await commands()).gradeOf(context, id),
      run: async (values, call) => (await commands()).printGrade(values, call),
    }),
  ],
};
