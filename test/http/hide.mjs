// Preloaded, it makes this Node one that has no `_header` and no `_consuming`: only node's own code still has them.
import { IncomingMessage, OutgoingMessage } from 'node:http';

for (const [{ prototype }, name] of [
  [OutgoingMessage, '_header'],
  [IncomingMessage, '_consuming'],
]) {
  const values = new WeakMap();
  const isOwn = () => new Error().stack.split('\n')[3].includes('node:');
  Object.defineProperty(prototype, name, {
    get() {
      return isOwn() ? values.get(this) : undefined;
    },
    set(value) {
      if (isOwn()) values.set(this, value);
    },
  });
}
