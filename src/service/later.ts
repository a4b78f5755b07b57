/**
 * For speed: a GET on a store in memory need not wait, and promises would cost a list a tenth of its CPU. So the steps of
 * a request are not `async`: they return what they have, and a promise only where they wait.
 */
export type Later<T> = T | Promise<T>;

/** What `next` makes of the value: at once if it is there. */
export function after<T, U>(value: Later<T>, next: (value: T) => Later<U>): Later<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}
