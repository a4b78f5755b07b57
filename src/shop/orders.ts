/** Orders: the only way an animal's status changes. available → pending → sold, or available again. */
import { etagOf, preconditionOf, taggedReply } from '../http/conditions.ts';
import { ApiError } from '../http/errors.ts';
import { jsonReply, type Reply, type TaggedReply } from '../http/reply.ts';
import { refuseParameters } from '../http/request.ts';
import type { Int64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { type JsonValue, readJson } from '../json/reader.ts';
import { type Ahead, type FirstResult, ORDER_STATUSES, type Order } from '../store/model.ts';
import { type Call, idParam, notFound, type ReadCall, type Shop } from './call.ts';
import { makeIdempotently, replayed } from './idempotency.ts';
import { firstAfter, pageReply, readPageRequest } from './paging.ts';

const CLOSED_STATUSES = ['delivered', 'cancelled'] as const;

export function listOrders(shop: Shop, call: ReadCall): TaggedReply {
  const page = readPageRequest(call.query, ORDER_STATUSES);
  const orders = shop.store.read.orders.page(firstAfter(page.after), page.limit, page.status);
  return pageReply('/v1/store/orders', page, orders, orderJson);
}

export function getOrder(shop: Shop, call: ReadCall): TaggedReply {
  refuseParameters(call.query);
  const order = shop.store.read.orders.get(idParam(call.param));
  if (order === undefined) throw notFound('order');
  return taggedReply(orderJson(order));
}

export function createOrder(shop: Shop, call: Call): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const petId = readNewOrder(shop, body);
  const by = call.caller.id;
  const placedAt = Math.floor(shop.clock.wall());
  const again = (ahead: Ahead, { id }: FirstResult) => {
    const order = ahead.orders.get(id);
    return order?.petId === petId && order;
  };
  return makeIdempotently(shop, call, 'placeOrder', again, (ahead, once) => {
    const pet = typeof petId === 'number' ? ahead.pets.get(petId) : undefined;
    if (pet === undefined) throw new ApiError('invalid_body', noAnimal(petId));
    if (pet.status !== 'available') {
      throw new ApiError('pet_unavailable', `animal ${pet.id} must be available (it is ${pet.status})`);
    }
    const order: Order = { id: ahead.counters.nextOrderId, petId: pet.id, status: 'placed', placedAt };
    return { op: 'placeOrder', order, once, by };
  }).then((done) => (done.op === 'placeOrder' ? placed(done.order) : replayed(placed(done.row))));
}

export function updateOrder(_: Shop, call: Call): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const status = members.oneOf('status', CLOSED_STATUSES);
  members.end();
  const mustHold = preconditionOf(call.conditions);
  const id = idParam(call.param);
  let closed: Order;
  return call
    .write((ahead) => {
      const order = ahead.orders.get(id);
      if (order === undefined) throw notFound('order');
      mustHold(etagOf(orderJson(order)));
      if (order.status !== 'placed') throw new ApiError('order_closed', `order ${order.id} is already ${order.status}`);
      closed = { ...order, status };
      return { op: 'closeOrder', id: order.id, status };
    })
    .then(() => jsonReply(200, orderJson(closed), ['ETag', etagOf(orderJson(closed))]));
}

function placed(order: Order): Reply {
  return jsonReply(201, orderJson({ ...order, status: 'placed' }), ['Location', `/v1/store/orders/${order.id}`]);
}

/** Reads a new order. Throws all violations in one message. If only the animal is unknown, the write throws that. */
function readNewOrder({ store }: Shop, value: JsonValue): Int64 {
  const members = new Members(value);
  const isMissing = (id: Int64) => typeof id !== 'number' || store.read.pets.get(id) === undefined;
  const petId = members.int64('petId', (id) => (isMissing(id) ? noAnimal(id) : undefined));
  members.end({ id: 'is given by the service; leave it out', status: 'is "placed" for a new order; leave it out' });
  return petId;
}

function noAnimal(id: Int64): string {
  return `petId: there is no animal ${id}`;
}

function orderJson({ id, petId, status, placedAt }: Order): string {
  return `{"id":${id},"petId":${petId},"status":"${status}","placedAt":"${new Date(placedAt).toISOString()}"}`;
}
