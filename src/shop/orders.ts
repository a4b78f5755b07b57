/** Orders: the only way an animal's status changes. available → pending → sold, or available again. */

import { ApiError, notFound } from '../http/errors.ts';
import { enumParameter, refuseParameters } from '../http/query.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import type { Int64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { readJson } from '../json/reader.ts';
import { ORDER_STATUSES, type Pet } from '../store/model.ts';
import { type Call, type HandlerContext, idParam, write } from './handler.ts';
import { created, once } from './idempotency.ts';
import { pageReply } from './lists.ts';

const FILTERS = [enumParameter('status', ORDER_STATUSES)];
const CLOSED_STATUSES = ['delivered', 'cancelled'] as const;

export function listOrders({ query }: Call, { store }: HandlerContext): Reply {
  return pageReply('/v1/store/orders', query, store.read.orders, FILTERS);
}

export function getOrder({ query, param }: Call, { store }: HandlerContext): Reply {
  refuseParameters(query);
  const order = store.read.orders.text(idParam(param));
  if (order === undefined) throw notFound('order');
  return jsonReply(200, order);
}

export function createOrder(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const isMissing = (id: Int64) => typeof id !== 'number' || context.store.read.pets.text(id) === undefined;
  const petId = members.int64('petId', (id) => (isMissing(id) ? noAnimal(id) : undefined));
  members.end({ id: 'is given by the service; leave it out', status: 'is "placed" for a new order; leave it out' });
  const placedAt = new Date(context.clock.wall()).toISOString();
  return once(
    context,
    call,
    'createOrder',
    () => `${petId}`,
    (tx) => {
      const pet = typeof petId === 'number' ? tx.pets.get(petId) : undefined;
      if (pet === undefined) throw new ApiError('invalid_body', noAnimal(petId));
      if (pet.status !== 'available') {
        throw new ApiError('pet_unavailable', `animal ${pet.id} must be available (it is ${pet.status})`);
      }
      tx.pets.put({ ...pet, status: 'pending' });
      const { id } = tx.orders.add({ petId: pet.id, status: 'placed', placedAt });
      return created(tx.orders.text(id)!, `/v1/store/orders/${id}`);
    },
  );
}

export async function updateOrder(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const status = members.oneOf('status', CLOSED_STATUSES);
  members.end();
  return write(context, call, (tx) => {
    const order = tx.orders.get(idParam(call.param));
    if (order === undefined) throw notFound('order');
    if (order.status !== 'placed') throw new ApiError('order_closed', `order ${order.id} is already ${order.status}`);
    const pet = tx.pets.get(order.petId) as Pet; // an animal with a placed order cannot be removed
    tx.pets.put({ ...pet, status: status === 'delivered' ? 'sold' : 'available' });
    return jsonReply(200, tx.orders.put({ ...order, status }));
  });
}

const noAnimal = (id: Int64) => `petId: there is no animal ${id}`;
