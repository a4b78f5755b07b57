/** Writes on their way to the thread that decides them. */
import type { Asked } from '../asked.ts';
import { StoreError } from '../store/model.ts';
import type { Line } from './line.ts';

/** The most that passes at once, a byte a character. Hundreds of bodies may become complete in one turn. */
const MAX_PASSING_BYTES = 32 * 1024 * 1024;

/** The body stands in it as it is: in JSON, one of control characters would take six times its bytes. */
function packed({ body, ...call }: Asked): string {
  return `${JSON.stringify(call)}\n${body}`; // JSON on one line
}

export function unpacked(text: string): Asked {
  const cut = text.indexOf('\n');
  return { ...JSON.parse(text.slice(0, cut)), body: text.slice(cut + 1) };
}

/** The way to the main thread, which decides a write. Each of `threads` has its share of what passes at once. */
export function passing(line: Pick<Line, 'ask'>, threads: number) {
  let bytes = 0;
  return async (asked: Asked) => {
    const text = packed(asked);
    const after = bytes + text.length;
    if (threads * after > MAX_PASSING_BYTES) throw new StoreError('busy', 'too many writes are on their way');
    bytes = after;
    // The answer is text too: it takes half the time that objects do.
    const answer = line.ask<string>('write', text).finally(() => (bytes -= text.length));
    return JSON.parse(await answer);
  };
}
