/** `petstore probe gateway` and `probe service`: the changes that a gateway makes. Only these load the probe. */
import { readFile, writeFile } from 'node:fs/promises';
import type { Run } from '../probe/report.ts';
import { didYouMean } from './arguments.ts';
import { command } from './command.ts';
import { CommandError, EXIT, reasonOf } from './exit.ts';
import { flag, hostPort, json, needed, optional, path, placed, text, webUrl } from './options.ts';
import { counted, print, told, withProgress } from './output.ts';

const through = needed(webUrl, 'URL', 'the gateway, as clients reach it');
const junit = optional(path, 'FILE', 'write the cases there as JUnit XML');
const ids = text('ids with commas between', /^[\w-]+(?:,[\w-]+)*$/);

export const PROBE_COMMANDS = [
  command({
    name: 'probe gateway',
    does: 'find the changes that a gateway makes to HTTP, case by case; exit 1 if one breaks a rule',
    more: 'Point the gateway at HOST:PORT. The probe is its origin there, sends through URL, and sees both ends.',
    options: {
      listen: needed(hostPort, 'HOST:PORT', 'where the probe listens as the origin'),
      through,
      only: optional(ids, 'ID,…', 'only these cases'),
      slow: flag('also the slow cases: idle for 61 s, a reply after 25 s, one that drips'),
      accept: optional(path, 'FILE', 'ids of cases that may break, a line each, with # remarks'),
      save: optional(path, 'FILE', 'write the report there, as JSON'),
      against: optional(path, 'FILE', 'show differences from a saved report; only they decide the exit status'),
      junit,
      json,
    },
    run: async ({ only, accept, against, save, ...values }) => {
      const { CASES, idsIn, probeGateway } = await import('../probe/probe.ts');
      const accepted = accept === undefined ? [] : idsIn(await contentOf(accept));
      const chosen = only?.split(',');
      for (const id of [...(chosen ?? []), ...accepted]) {
        if (CASES.includes(id)) continue;
        throw new CommandError(EXIT.usage, `petstore probe gateway: there is no case ${id}${didYouMean(id, CASES)}`);
      }
      const before = against === undefined ? undefined : kept(against, await contentOf(against));
      const running = withProgress('probing', (at) => probeGateway({ ...values, only: chosen }, at));
      await tell(running, { ...values, accepted, before, save });
    },
  }),
  command({
    name: 'probe service',
    does: 'find the changes that a gateway makes to a running petstore; exit 1 if one breaks a rule',
    more: 'Uses up the minute of the key and adds a few animals: give it a key of its own, on a small plan.',
    options: {
      direct: placed(webUrl, 'DIRECT', 'the service without the gateway'),
      through,
      key: {
        ...needed(text('a key such as ps_live_…', /^ps_\w{1,60}$/), 'KEY', 'key of a small plan, such as free'),
        isSecret: true,
      },
      junit,
      json,
    },
    run: async (values) => {
      const { probeService } = await import('../probe/probe.ts');
      const announce = (words: string) => told(`${words}\n`);
      const running = withProgress('probing', (at) => probeService(values, announce, at));
      await tell(running, { ...values, accepted: [] });
    },
  }),
];

interface Telling {
  through: string;
  json: boolean;
  junit?: string;
  save?: string;
  accepted: readonly string[];
  before?: Run;
}

/** Prints and saves the report. A run that failed has one as well, so that programs always find a report to read. */
async function tell(running: Promise<Run>, { through, json, junit, save, ...settings }: Telling): Promise<void> {
  const { failedRun, report } = await import('../probe/probe.ts');
  let failure: unknown;
  const run = await running.catch((error) => {
    failure = error;
    return failedRun(through, reasonOf(error));
  });
  const { document, table, xml, failed } = report(run, settings);
  const kept = await Promise.allSettled([
    save !== undefined && run.error === undefined ? writeFile(save, `${document}\n`) : undefined,
    junit !== undefined ? writeFile(junit, xml) : undefined,
  ]);
  let unprinted: unknown; // a reader that goes away must not hide a failure of the run
  if (json || failure === undefined) await print(json ? document : table).catch((error) => (unprinted = error));
  for (const one of kept) if (one.status === 'rejected') throw one.reason;
  if (run.error !== undefined) throw failure ?? new Error(run.error);
  const what = settings.before === undefined ? (failed.length === 1 ? 'breaks' : 'break') : 'changed';
  if (failed.length > 0) throw new Error(`${counted(failed.length, 'case')} ${what}: ${failed.join(', ')}`);
  if (unprinted !== undefined) throw unprinted;
}

const contentOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error) => {
    throw new Error(`${file}: ${reasonOf(error)}`);
  });

function kept(file: string, content: string): Run {
  try {
    const run: Run = JSON.parse(content);
    const isWhole = run.error === undefined && run.cases.length > 0; // else all would be as before
    if (
      isWhole &&
      run.cases.every(({ id, verdict, why }) => [id, verdict, why].every((one) => typeof one === 'string'))
    )
      return run;
  } catch {}
  throw new Error(`${file} is not a report of a whole run of probe gateway --save or --json`);
}
