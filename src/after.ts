/** Calls `next` now, or when the promise resolves. `await` would delay each request by a turn of the event loop. */
export function after<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
