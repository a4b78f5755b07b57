import { CATALOGUE } from '../../http/errors.ts';
import { ORDER_STATUSES, PET_STATUSES } from '../../store/model.ts';

/** A piece of the document: plain data, as it will be printed. */
export type Part = { readonly [name: string]: unknown };

export const schema = (name: string): Part => ({ $ref: `#/components/schemas/${name}` });

/** No minimum and maximum: 2^63 - 1 cannot stand in a JSON document that is read with doubles. The format says it. */
const int64 = { type: 'integer', format: 'int64' };
const assignedId = (description: string): Part => ({ ...int64, minimum: 1, description });

const EXACT = 'Any 64-bit integer, exact to the last digit: 9007199254740993 stays 9007199254740993.';
export const categoryId = { ...int64, description: `Identifier of the category. ${EXACT}` };
export const petId = assignedId('Identifier of an animal.');
export const orderId = assignedId('Identifier of an order.');

/**
 * A character without Unicode's property White_Space, of which \S is not the opposite; written out, since many readers
 * of patterns do not know \P{White_Space}, or take it for these very letters.
 */
const NOT_WHITE_SPACE = '[^\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';

const name = (whose: string): Part => ({
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: NOT_WHITE_SPACE,
  description: `The ${whose}'s name: 1 to 255 Unicode characters, at least one of them not white space. Kept as sent.`,
});

const record = (description: string, required: string[], properties: Part): Part => ({
  type: 'object',
  description,
  required,
  properties,
});
const body = (description: string, required: string[], properties: Part): Part => ({
  ...record(description, required, properties),
  additionalProperties: false,
});
const page = (description: string, of: string): Part => ({
  type: 'array',
  description,
  maxItems: 100,
  items: schema(of),
});

const newPet = { name: name('animal'), categoryId, status: schema('PetStatus') };

export const schemas: Part = {
  PetStatus: { type: 'string', enum: PET_STATUSES, description: 'Availability of an animal.' },
  NewPet: body('An animal to add. Without `status` it is `available`.', ['name', 'categoryId'], newPet),
  Pet: record('An animal of the store.', ['id', 'name', 'categoryId'], {
    id: assignedId('Given by the service on creation: 1, 2, 3, …; never given twice.'),
    ...newPet,
  }),
  Pets: page('Animals by ascending id.', 'Pet'),
  OrderStatus: {
    type: 'string',
    enum: ORDER_STATUSES,
    description: 'An order is open while it is `placed`; `delivered` and `cancelled` are final.',
  },
  NewOrder: body('An order to place.', ['petId'], { petId }),
  OrderChange: body('How an open order ends.', ['status'], {
    status: { type: 'string', enum: ORDER_STATUSES.filter((status) => status !== 'placed') },
  }),
  Order: record('An order of one animal.', ['id', 'petId', 'status', 'placedAt'], {
    id: orderId,
    petId,
    status: schema('OrderStatus'),
    placedAt: {
      type: 'string',
      format: 'date-time',
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
      description: 'When it was placed: UTC, with milliseconds.',
    },
  }),
  Orders: page('Orders by ascending id.', 'Order'),
  CategoryName: body('What a category is to be called.', ['name'], { name: name('category') }),
  Category: record('A category of animals.', ['id', 'name'], { id: categoryId, name: name('category') }),
  Categories: page('Categories by ascending id.', 'Category'),
  Error: record('The body of every error reply.', ['code', 'message', 'status'], {
    code: { type: 'string', enum: Object.keys(CATALOGUE), description: 'What went wrong, for programs.' },
    message: {
      type: 'string',
      minLength: 1,
      description: 'What went wrong and what would be right, for people. Names every violation found.',
    },
    status: { type: 'integer', minimum: 400, maximum: 599, description: 'The HTTP status of the reply.' },
  }),
};
