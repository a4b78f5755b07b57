/** Orders: the only way an animal's status changes. available → pending → sold, or available again. */

import { enumParameter, refuseParameters } from '../http/edges.ts';
import { ApiError, notFound } from '../http/errors.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import type { Int64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { readJson } from '../json/reader.ts';
import { ORDER_STATUSES, type Order, type Pet } from '../store/model.ts';
import { type Call, type HandlerContext, idParam, write } from './handler.ts';
import { created, once } from './idempotency.ts';
import { pageReply, readPageQuery } from './lists.ts';

const FILTERS = [enumParameter('status', ORDER_STATUSES)];
const CLOSED_STATUSES = ['delivered', 'cancelled'] as const;

export function orderJson({ id, petId, status, placedAt }: Order): string {
  return `{"id":${id},"petId":${petId},"status":"${status}","placedAt":"${new Date(placedAt).toISOString()}"}`;
}

export function listOrders({ query }: Call, { texts }: HandlerContext): Reply {
  const asked = readPageQuery(query, FILTERS);
  return pageReply('/v1/store/orders', asked, texts.orders.page(asked));
}

export function getOrder({ query, param }: Call, { texts }: HandlerContext): Reply {
  refuseParameters(query);
  const reply = texts.orders.one(idParam(param));
  if (reply === undefined) throw notFound('order');
  return reply;
}

export function createOrder(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const isMissing = (id: Int64) => typeof id !== 'number' || context.store.read.pets.get(id) === undefined;
  const petId = members.int64('petId', (id) => (isMissing(id) ? noAnimal(id) : undefined));
  members.end({ id: 'is given by the service; leave it out', status: 'is "placed" for a new order; leave it out' });
  const placedAt = Math.floor(context.clock.wall());
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
      const order = tx.orders.add({ petId: pet.id, status: 'placed', placedAt });
      return created(orderJson(order), `/v1/store/orders/${order.id}`);
    },
  );
}

export async function updateOrder(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const status = members.oneOf('status', CLOSED_STATUSES);
  members.end();
  const closed = await write(context, call, (tx) => {
    const order = tx.orders.get(idParam(call.param));
    if (order === undefined) throw notFound('order');
    if (order.status !== 'placed') throw new ApiError('order_closed', `order ${order.id} is already ${order.status}`);
    const pet = tx.pets.get(order.petId) as Pet; // an animal with a placed order cannot be removed
    tx.pets.put({ ...pet, status: status === 'delivered' ? 'sold' : 'available' });
    const changed = { ...order, status };
    tx.orders.put(changed);
    return changed;
  });
  return jsonReply(200, orderJson(closed));
}

const noAnimal = (id: Int64) => `petId: there is no animal ${id}`;
