/** What the lab costs where it is switched off: the service as it is, beside one that was built without any of it. */
import { existsSync, readFileSync } from 'node:fs';
import { build, type Plugin } from 'esbuild';
import { optionsOf, ROOT } from '../../scripts/bundle.ts';
import { get, mustAnswer } from '../ask.ts';
import type { Bench } from '../bench.ts';
import { contest, reachRatio } from '../contest.ts';
import { SERVICE, Store } from '../service.ts';
import { ANIMALS, RARE_EVERY } from '../subjects.ts';

const WITHOUT = 'built without the lab';
/** Where the way of a request asks for the lab, and what it is told instead: that there is none. */
const ASKED: [RegExp, string][] = [
  [/\bthis\.#services\?\.lab\b/g, '(undefined as never)'],
  [/\{ (\w+, )?lab \} = (this\.#services as Services)/g, '{ $1 } = $2, lab = undefined as never'],
];

export async function lab(bench: Bench): Promise<void> {
  if (!existsSync(`${ROOT}src/lab`)) return bench.miss('lab', 'there is no src/lab');
  const file = bench.file('without-lab.cjs');
  await buildWithout(file);
  const subjects = [];
  for (const [name, program] of [[SERVICE], [WITHOUT, file]]) {
    const store = new Store(bench);
    await store.fill(ANIMALS, RARE_EVERY);
    const calls = [get('/v1/pets?limit=20', await store.key())];
    const server = await store.serve(program);
    await mustAnswer(server.origin, calls[0]);
    subjects.push({ name, server, calls });
  }
  reachRatio(bench, 'lab', await contest(bench, 'lab', 32, subjects), [SERVICE, WITHOUT]);
}

async function buildWithout(outfile: string): Promise<void> {
  const withoutLab = (app: string) => {
    const cut = ASKED.reduce((text, [asked, told]) => text.replaceAll(asked, told), app);
    if (cut === app) throw new Error('src/app.ts asks for the lab in another way than is known here');
    return cut;
  };
  const plugin: Plugin = {
    name: 'without the lab',
    setup: ({ onLoad }) => {
      onLoad({ filter: /src\/app\.ts$/ }, ({ path }) => ({ contents: withoutLab(read(path)), loader: 'ts' }));
      onLoad({ filter: /src\/lab\// }, () => ({ contents: 'export const Lab = undefined;', loader: 'ts' }));
    },
  };
  await build({ ...optionsOf({ outfile, commit: 'benchmark' }), plugins: [plugin] });
}

const read = (file: string) => readFileSync(file, 'utf8');
