import { type RefusalName, refusals } from './errors.ts';
import { type HeaderName, headersWith, parameter } from './headers.ts';
import { type Part, schema } from './schemas.ts';

interface Described {
  id: string;
  tag: string;
  summary: string;
  description: string;
  parameters?: string[];
  request?: { schema: string; examples: Part };
  replies: Record<number, { is: string; schema: string; example: unknown; headers?: HeaderName[] }>;
  refusals: RefusalName[];
  /** Headers that every reply of the operation carries, errors included. */
  always?: HeaderName[];
  marks?: Part;
}

const EXPERIMENTAL = { 'x-stability': 'experimental' };
const READ: RefusalName[] = ['BadRequest', 'Unavailable'];
const WRITE: RefusalName[] = ['BadBody', 'BodyTooLarge', 'UnsupportedMediaType', 'WriteFailed', 'StorageFull'];

const rex = { id: 1, name: 'Rex', categoryId: 1, status: 'available' };
const mia = { id: 2, name: 'Mia', categoryId: 2, status: 'pending' };
const dogs = { id: 1, name: 'Dogs' };
const cats = { id: 2, name: 'Cats' };
const order = { id: 1, petId: 1, status: 'placed', placedAt: '2026-01-01T12:00:00.000Z' };

function operation(it: Described): Part {
  const { always = [] } = it;
  const replies = Object.entries(it.replies).map(([status, { is, schema: of, example, headers = [] }]) => [
    status,
    {
      description: is,
      headers: headersWith([...headers, ...always]),
      content: { 'application/json': { schema: schema(of), example } },
    },
  ]);
  return {
    operationId: it.id,
    tags: [it.tag],
    summary: it.summary,
    description: it.description,
    ...it.marks,
    ...(it.parameters && { parameters: it.parameters.map(parameter) }),
    ...(it.request && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schema(it.request.schema), examples: it.request.examples } },
      },
    }),
    responses: { ...Object.fromEntries(replies), ...refusals(it.refusals, always) },
  };
}

const pets: Part = {
  get: operation({
    id: 'listPets',
    tag: 'Animals',
    summary: 'List animals',
    description: 'A page of animals by ascending id. When more follow, `Link` names the next page.',
    parameters: ['Limit', 'PetStatus', 'After'],
    replies: { 200: { is: 'A page of animals.', schema: 'Pets', example: [rex, mia], headers: ['Next'] } },
    refusals: READ,
  }),
  post: operation({
    id: 'createPet',
    tag: 'Animals',
    summary: 'Add an animal',
    description: 'The service assigns the id. A `status` that is left out is `available`.',
    parameters: ['IdempotencyKey'],
    request: {
      schema: 'NewPet',
      examples: {
        short: { summary: 'What is required', value: { name: 'Rex', categoryId: 1 } },
        full: { summary: 'With a status', value: { name: 'Mia', categoryId: 2, status: 'pending' } },
      },
    },
    replies: {
      201: { is: 'The animal was added.', schema: 'Pet', example: rex, headers: ['Location', 'Replayed'] },
    },
    refusals: [...WRITE, 'InFlight', 'KeyReused'],
  }),
};

const pet: Part = {
  get: operation({
    id: 'getPet',
    tag: 'Animals',
    summary: 'Get an animal',
    description: 'Deprecated, and removed on 5 December 2030: use `GET /pets` with a `status` filter.',
    parameters: ['PetId'],
    replies: { 200: { is: 'The animal.', schema: 'Pet', example: rex } },
    refusals: [...READ, 'NotFound', 'Gone'],
    always: ['Deprecation', 'Sunset', 'Successor'],
    marks: { deprecated: true, 'x-sunset': '2030-12-05' },
  }),
};

const orders: Part = {
  get: operation({
    id: 'listOrders',
    tag: 'Orders',
    summary: 'List orders',
    description: 'A page of orders by ascending id. When more follow, `Link` names the next page.',
    parameters: ['Limit', 'OrderStatus', 'After'],
    replies: { 200: { is: 'A page of orders.', schema: 'Orders', example: [order], headers: ['Next'] } },
    refusals: READ,
    marks: EXPERIMENTAL,
  }),
  post: operation({
    id: 'createOrder',
    tag: 'Orders',
    summary: 'Place an order',
    description: 'The animal must be `available` and becomes `pending`, in one step.',
    parameters: ['IdempotencyKey'],
    request: { schema: 'NewOrder', examples: { order: { summary: 'An available animal', value: { petId: 1 } } } },
    replies: { 201: { is: 'The order was placed.', schema: 'Order', example: order, headers: ['Replayed'] } },
    refusals: [...WRITE, 'PetUnavailable', 'KeyReused'],
    marks: EXPERIMENTAL,
  }),
};

const oneOrder: Part = {
  patch: operation({
    id: 'updateOrder',
    tag: 'Orders',
    summary: 'Deliver or cancel an order',
    description: 'Delivered, its animal becomes `sold`; cancelled, it is `available` again. Both are final.',
    parameters: ['OrderId'],
    request: {
      schema: 'OrderChange',
      examples: {
        deliver: { summary: 'The animal is handed over', value: { status: 'delivered' } },
        cancel: { summary: 'The animal stays', value: { status: 'cancelled' } },
      },
    },
    replies: {
      200: { is: 'The order as it is now.', schema: 'Order', example: { ...order, status: 'delivered' } },
    },
    refusals: [...WRITE, 'NotFound', 'OrderClosed'],
    marks: EXPERIMENTAL,
  }),
};

const categories: Part = {
  get: operation({
    id: 'listCategories',
    tag: 'Categories',
    summary: 'List categories',
    description: 'A page of categories by ascending id. When more follow, `Link` names the next page.',
    parameters: ['Limit', 'AfterCategory'],
    replies: {
      200: {
        is: 'A page of categories.',
        schema: 'Categories',
        example: [dogs, cats],
        headers: ['Next'],
      },
    },
    refusals: READ,
    marks: EXPERIMENTAL,
  }),
};

const category: Part = {
  put: operation({
    id: 'putCategory',
    tag: 'Categories',
    summary: 'Name a category',
    description: 'Makes the category, or renames it. Asking again changes nothing.',
    parameters: ['CategoryId'],
    request: { schema: 'CategoryName', examples: { dogs: { summary: 'A plain name', value: { name: 'Dogs' } } } },
    replies: {
      200: { is: 'The category was renamed.', schema: 'Category', example: dogs },
      201: { is: 'The category is new.', schema: 'Category', example: dogs },
    },
    refusals: [...WRITE, 'NotFound'],
    marks: EXPERIMENTAL,
  }),
};

export const paths: Part = {
  '/pets': pets,
  '/pets/{petId}': pet,
  '/store/orders': orders,
  '/store/orders/{orderId}': oneOrder,
  '/categories': categories,
  '/categories/{categoryId}': category,
};
