/**
 * Calls `next` now if the value is there, or when its promise resolves. `await` would make a promise of every value,
 * and go on in a later microtask even if the value is there: each request would pay for that.
 */
export function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
