/** What the service gives, in the types of its JSON as the page reads it. */
import type { Int64 } from '../../../src/json/int64.ts';
import type * as model from '../../../src/store/model.ts';

/** A string of digits where a double cannot hold the integer. */
export type Id = number | string;
type Json<T> = { [Name in keyof T]: T[Name] extends Int64 ? Id : T[Name] };

export type Pet = Json<model.Pet>;
export type Category = Json<model.Category>;
export type Order = Json<Omit<model.Order, 'placedAt'>> & { placedAt: string };
export type { OrderStatus, PetStatus } from '../../../src/store/model.ts';
