/** What the service gives, as the page reads it. */

/** A string of digits where a double cannot hold the integer. */
export type Id = number | string;

export type PetStatus = 'available' | 'pending' | 'sold';
export type OrderStatus = 'placed' | 'delivered' | 'cancelled';

export interface Pet {
  id: Id;
  name: string;
  categoryId: Id;
  status: PetStatus;
}

export interface Order {
  id: Id;
  petId: Id;
  status: OrderStatus;
  placedAt: string;
}

export interface Category {
  id: Id;
  name: string;
}
