/**
 * Applies a patch to files that have changed since it was made. Each run of changed lines is looked for behind the one
 * before it, with as many of the lines around it as still stand there, and must fit at one place alone. So only a change
 * of the very lines that the patch changes, or of all that stands around them, keeps it from being applied.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A run of changed lines, and the unchanged ones around it, within its hunk. */
interface Edit {
  before: string[];
  removed: string[];
  added: string[];
  after: string[];
}

/** Changes the files below `root`. Throws where an edit fits nowhere, or in several places. */
export function applyPatch(root: string, patch: string): void {
  for (const ofFile of patch.split(/^diff --git .*\n/m).slice(1)) {
    const file = /^\+\+\+ b\/(.+)$/m.exec(ofFile)![1];
    const hunks = ofFile.split(/^@@ .*\n/m).slice(1);
    const text = readFileSync(join(root, file), 'utf8');
    writeFileSync(join(root, file), edited(text, hunks.flatMap(editsOf), file));
  }
}

/** The text with all edits made. */
export function edited(text: string, edits: readonly Edit[], file = 'the text'): string {
  const lines = text.split('\n');
  let from = 0;
  for (const edit of edits) {
    const at = placeOf(edit, lines, from);
    if (at === undefined)
      throw new Error(`${file}: nowhere, or not in one place alone, stands\n${edit.removed.join('\n')}`);
    lines.splice(at, edit.removed.length, ...edit.added);
    from = at + edit.added.length;
  }
  return lines.join('\n');
}

/** The edits of a hunk, without its first line. */
export function editsOf(hunk: string): Edit[] {
  const edits: Edit[] = [];
  const runs = hunk.match(/(?:^ .*\n|^\n)+|(?:^[-+].*\n)+/gm) ?? [];
  const linesOf = (run: string | undefined, mark: string) =>
    (run ?? '')
      .split('\n')
      .filter((line) => line[0] === mark)
      .map((line) => line.slice(1));
  for (const [at, run] of runs.entries()) {
    if (run[0] === ' ') continue;
    const [before, after] = [linesOf(runs[at - 1], ' '), linesOf(runs[at + 1], ' ')];
    edits.push({ before, removed: linesOf(run, '-'), added: linesOf(run, '+'), after });
  }
  return edits;
}

function placeOf({ before, removed, after }: Edit, lines: string[], from: number): number | undefined {
  const sizes = Array.from({ length: before.length + 1 }, (_, above) =>
    Array.from({ length: after.length + 1 }, (_, below) => ({ above, below })),
  ).flat();
  for (const { above, below } of sizes.sort((a, b) => b.above + b.below - a.above - a.below || b.above - a.above)) {
    const wanted = [...before.slice(before.length - above), ...removed, ...after.slice(0, below)];
    if (!wanted.some((line) => line.trim() !== '')) continue;
    const fits = (_: string, at: number) =>
      at - above >= 0 && at >= from && wanted.every((line, n) => lines[at - above + n] === line);
    const found = lines.flatMap((line, at) => (fits(line, at) ? [at] : []));
    if (found.length === 1) return found[0];
  }
  return undefined;
}
