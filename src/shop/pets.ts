/** Animals: validation, and the handlers of their endpoints. */

import { enumParameter, refuseParameters } from '../http/edges.ts';
import { ApiError, notFound } from '../http/errors.ts';
import { etagOf, preconditionOf, writtenReply } from '../http/etag.ts';
import { Reply } from '../http/reply.ts';
import type { Int64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { readJson } from '../json/reader.ts';
import { PET_STATUSES, type Pet, type Transaction } from '../store/model.ts';
import { type Call, type HandlerContext, idParam, write } from './handler.ts';
import { created, once } from './idempotency.ts';
import { pageReply, readPageQuery } from './lists.ts';

const FILTERS = [enumParameter('status', PET_STATUSES)];
export const NAME_LENGTH = { min: 1, max: 255 };

/** When `GET /v1/pets/{petId}` was deprecated. */
const DEPRECATED_AT = Date.UTC(2025, 11, 5);
/** From this moment on, that endpoint answers 410. */
const REMOVED_AT = Date.UTC(2030, 11, 5);

export const GET_PET_HEADERS = [
  ...['Deprecation', `@${DEPRECATED_AT / 1_000}`],
  ...['Sunset', new Date(REMOVED_AT).toUTCString()],
  ...['Link', '</v1/pets>; rel="successor-version"'],
];

export function petJson({ id, name, categoryId, status }: Pet): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`;
}

export function listPets({ query }: Call, { store, texts }: HandlerContext): Reply {
  const asked = readPageQuery(query, FILTERS);
  return pageReply('/v1/pets', asked, texts.pets.page(asked), store, store.read.pets.revision);
}

export function getPet({ query, param, clock }: Call, { texts }: HandlerContext): Reply {
  if (clock.wall() >= REMOVED_AT) {
    throw new ApiError('gone', 'this operation was removed; use GET /v1/pets with a status filter');
  }
  refuseParameters(query);
  const reply = texts.pets.one(idParam(param));
  if (reply === undefined) throw notFound('animal');
  return reply;
}

/** Reads an animal: from a request, or without a context from an import or a seed, which may name any category. */
export function readPet(members: Members, context?: HandlerContext): Omit<Pet, 'id'> {
  return {
    name: members.text('name', NAME_LENGTH),
    categoryId: readCategoryId(members, context),
    status: members.oneOf('status', PET_STATUSES, 'available'),
  };
}

export function createPet(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const wanted = readPet(members, context);
  members.end({ id: 'is given by the service; leave it out' });
  return once(
    context,
    call,
    'createPet',
    () => petJson({ id: 0, ...wanted }),
    (tx) => {
      checkCategory(tx, wanted.categoryId, context);
      const pet = tx.pets.add(wanted);
      return created(petJson(pet), `/v1/pets/${pet.id}`);
    },
  );
}

export async function updatePet(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const name = members.has('name') ? members.text('name', NAME_LENGTH) : undefined;
  const categoryId = members.has('categoryId') ? readCategoryId(members, context) : undefined;
  if (name === undefined && categoryId === undefined)
    members.fault('name, categoryId: at least one of them must be sent');
  members.end({ id: 'stands in the path; leave it out', status: 'moves with orders; leave it out' });
  const mustHold = preconditionOf(call.headers);
  const updated = await write(context, call, (tx) => {
    const pet = tx.pets.get(idParam(call.param));
    if (pet === undefined) throw notFound('animal');
    mustHold(etagOf(petJson(pet)));
    if (categoryId !== undefined) checkCategory(tx, categoryId, context);
    const changed = { ...pet, name: name ?? pet.name, categoryId: categoryId ?? pet.categoryId };
    tx.pets.put(changed);
    return changed;
  });
  return writtenReply(200, petJson(updated));
}

/** The id is never given again, and closed orders keep it. */
export async function deletePet(call: Call, context: HandlerContext): Promise<Reply> {
  refuseParameters(call.query);
  const mustHold = preconditionOf(call.headers);
  await write(context, call, (tx) => {
    const pet = tx.pets.get(idParam(call.param));
    if (pet === undefined) throw notFound('animal');
    mustHold(etagOf(petJson(pet)));
    if (tx.orders.find(pet.id) !== undefined) {
      throw new ApiError('pet_unavailable', `animal ${pet.id} has a placed order: deliver or cancel it first`);
    }
    tx.pets.delete(pet.id);
  });
  return new Reply(204, []);
}

/** If only the category is unknown, the write refuses it: the category may be made meanwhile. */
function readCategoryId(members: Members, context?: HandlerContext): Int64 {
  const isMissing = (id: Int64) =>
    context?.categories === 'known' && context.store.read.categories.get(id) === undefined;
  return members.int64('categoryId', (id) => (isMissing(id) ? noCategory(id) : undefined));
}

function checkCategory(tx: Transaction, id: Int64, { categories }: HandlerContext): void {
  if (categories === 'known' && tx.categories.get(id) === undefined) throw new ApiError('invalid_body', noCategory(id));
}

const noCategory = (id: Int64) => `categoryId: there is no category ${id}`;
