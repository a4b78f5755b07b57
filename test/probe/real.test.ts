/** The probe through gateways as people install them, twice with equal verdicts, and through the configurations of docs/. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { idsIn, probeGateway, report } from '../../src/probe/probe.ts';
import type { Result, Run } from '../../src/probe/report.ts';
import { startNginx, withoutNginx } from '../nginx.ts';
import { freePort } from '../program.ts';
import { GATEWAYS, gatewayFor, SAMPLE, whyNot } from './gateways.ts';

const doc = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

async function probed(through: string, port: number, only?: string[]) {
  return probeGateway({ listen: { host: '127.0.0.1', port }, through, only, slow: false }, () => {});
}

/** The table of docs/probe.md: of each gateway, by its name and version, the verdicts that are not `same`. */
function told(): Map<string, Map<string, string>> {
  const lines = doc('probe.md').split('\n');
  const start = lines.findIndex((line) => line.startsWith('| case | nginx'));
  const [[, ...names], , ...rows] = lines.slice(start, lines.indexOf('', start)).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const verdictsOf = (at: number) =>
    rows.filter((row) => row[at + 1] !== '').map((row) => [row[0], row[at + 1]] as const);
  const plain = ([id, cell]: readonly [string, string]) => [id.replaceAll('`', ''), cell.split(':')[0]] as const;
  return new Map(names.map((name, at) => [name, new Map(verdictsOf(at).map(plain))]));
}

const TOLD = told();
/** Cases that a gateway answers now so, now otherwise, to the same bytes: two runs may differ in them. */
const BY_CHANCE: Record<string, string[]> = { varnish: ['reply-trailers'] };

/**
 * A second run gives the verdicts of the first. Where it does not, as when a gateway lost its processor between a body
 * and the reply to it, both are said, and the case is asked three times more: three of five must agree.
 */
async function withoutChance(t: TestContext, first: Run, again: (only?: string[]) => Promise<Run>): Promise<Run> {
  const runs = [first, await again()];
  const { failed } = report(runs[1], { accepted: [], before: first });
  if (failed.length === 0) return first;
  for (const _ of [3, 4, 5]) runs.push(await again(failed));
  const cases = first.cases.map((one) => {
    if (!failed.includes(one.id)) return one;
    const tries = runs.map((run) => run.cases.find(({ id }) => id === one.id)!);
    const words = ({ verdict, why }: Result) => `${verdict} ${why}`;
    t.diagnostic(`${one.id}: ${tries.map(words).join('; ')}`);
    const most = tries.find((a) => tries.filter((b) => words(a) === words(b)).length >= 3);
    return most ?? assert.fail(`${one.id} differs from run to run: ${tries.map(words).join('; ')}`);
  });
  return { ...first, cases };
}

/** Each exception names a case that breaks. Where one does not, what came is said: on a starved machine it may be chance. */
function areNeeded(accepted: string[], { cases }: Run): void {
  for (const id of accepted) {
    const { verdict, why, came } = cases.find((one) => one.id === id) ?? assert.fail(`there is no case ${id}`);
    assert.equal(verdict, 'breaks', `${id} needs no exception: ${verdict}, ${why}; ${came}`);
  }
}

describe('real gateways', { concurrency: 2 }, () => {
  for (const [name, gateway] of Object.entries(GATEWAYS)) {
    test(`through ${name}: two runs with equal verdicts, those that docs/probe.md tells`, {
      skip: whyNot(name),
    }, async (t) => {
      const port = await freePort();
      const through = await gatewayFor(t, gateway, port);
      const isSure = ({ id }: { id: string }) => !BY_CHANCE[name]?.includes(id);
      const sure = async (only?: string[]) => {
        const run = await probed(through, port, only);
        return { ...run, cases: run.cases.filter(isSure) };
      };
      const { cases } = await withoutChance(t, await sure(), sure);
      const seen = cases.filter(({ verdict }) => verdict !== 'same').map(({ id, verdict }) => `${id} ${verdict}`);
      const [column, verdicts] =
        [...TOLD].find(([column]) => column.toLowerCase().startsWith(name)) ?? assert.fail(name);
      const expected = [...verdicts].filter(([id]) => cases.some((one) => one.id === id)); // not those by chance
      const version = spawnSync(gateway.program, [gateway.version], { encoding: 'utf8' });
      const isTold = `${version.stdout}${version.stderr}`.includes(/[\d.]+/.exec(column)![0]);
      if (isTold) assert.deepEqual(seen.sort(), expected.map((row) => row.join(' ')).sort());
      else t.diagnostic(`another version than ${column}: ${version.stdout}${version.stderr}${seen.join('; ')}`);
    });
  }

  test('docs/nginx.conf breaks nothing but what docs/nginx.accept names', { skip: withoutNginx }, async (t) => {
    const port = await freePort();
    const { url } = await startNginx(t, `127.0.0.1:${port}`);
    const run = await probed(url, port);
    const accepted = idsIn(doc('nginx.accept'));
    assert.deepEqual(report(run, { accepted }).failed, []);
    const of = (id: string) => run.cases.find((one) => one.id === id)?.verdict;
    areNeeded(accepted, run);
    for (const id of ['lost-get', 'lost-get-kept', 'early-401', 'early-413', 'header-x-forwarded-for'])
      assert.equal(of(id), 'same', id);
  });

  const withoutHaproxy = whyNot('haproxy') || (spawnSync('openssl', ['version']).error && 'there is no openssl');

  test('docs/haproxy.cfg breaks nothing but what docs/haproxy.accept names', { skip: withoutHaproxy }, async (t) => {
    const port = await freePort();
    const through = (await gatewayFor(t, SAMPLE, port)).replace('http:', 'https:');
    const run = await probed(through, port);
    const accepted = idsIn(doc('haproxy.accept'));
    assert.deepEqual(report(run, { accepted }).failed, []);
    areNeeded(accepted, run);
  });
});
