/** Animals: validation, and the handlers of their endpoints. */

import { ApiError, notFound } from '../http/errors.ts';
import { enumParameter, refuseParameters } from '../http/query.ts';
import { jsonReply, noContent, type Reply } from '../http/reply.ts';
import { Members } from '../json/members.ts';
import { readJson } from '../json/reader.ts';
import { PET_STATUSES, type Pet, TABLES } from '../store/model.ts';
import { type Call, type HandlerContext, idParam, write } from './handler.ts';
import { created, once } from './idempotency.ts';
import { pageReply } from './lists.ts';

const FILTERS = [enumParameter('status', PET_STATUSES)];
export const NAME_LENGTH = { min: 1, max: 255 };

/** From this moment on, `GET /v1/pets/{petId}` answers 410. */
const REMOVED_AT = Date.UTC(2030, 11, 5);

export const GET_PET_HEADERS = [
  ...['Sunset', new Date(REMOVED_AT).toUTCString()],
  ...['Link', '</v1/pets>; rel="successor-version"'],
];

export const petJson = TABLES.pets.json;

export function listPets({ query }: Call, { store }: HandlerContext): Reply {
  return pageReply('/v1/pets', query, store.read.pets, FILTERS);
}

export function getPet({ query, param }: Call, { store, clock }: HandlerContext): Reply {
  if (clock.wall() >= REMOVED_AT) {
    throw new ApiError('gone', 'this operation was removed; use GET /v1/pets with a status filter');
  }
  refuseParameters(query);
  const pet = store.read.pets.text(idParam(param));
  if (pet === undefined) throw notFound('animal');
  return jsonReply(200, pet);
}

/** Reads an animal: from a request, an import or a seed. */
export function readPet(members: Members): Omit<Pet, 'id'> {
  return {
    name: members.text('name', NAME_LENGTH),
    categoryId: members.int64('categoryId'),
    status: members.oneOf('status', PET_STATUSES, 'available'),
  };
}

export function createPet(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const wanted = readPet(members);
  members.end({ id: 'is given by the service; leave it out' });
  return once(
    context,
    call,
    'createPet',
    () => petJson({ id: 0, ...wanted }),
    (tx) => {
      const { id } = tx.pets.add(wanted);
      return created(tx.pets.text(id)!, `/v1/pets/${id}`);
    },
  );
}

export async function updatePet(call: Call, context: HandlerContext): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const members = new Members(body);
  const name = members.has('name') ? members.text('name', NAME_LENGTH) : undefined;
  const categoryId = members.has('categoryId') ? members.int64('categoryId') : undefined;
  if (name === undefined && categoryId === undefined)
    members.fault('name, categoryId: at least one of them must be sent');
  members.end({ id: 'stands in the path; leave it out', status: 'moves with orders; leave it out' });
  return write(context, call, (tx) => {
    const pet = tx.pets.get(idParam(call.param));
    if (pet === undefined) throw notFound('animal');
    const changed = { ...pet, name: name ?? pet.name, categoryId: categoryId ?? pet.categoryId };
    return jsonReply(200, tx.pets.put(changed));
  });
}

/** The id is never given again, and closed orders keep it. */
export async function deletePet(call: Call, context: HandlerContext): Promise<Reply> {
  refuseParameters(call.query);
  await write(context, call, (tx) => {
    const pet = tx.pets.get(idParam(call.param));
    if (pet === undefined) throw notFound('animal');
    if (tx.orders.find(pet.id) !== undefined) {
      throw new ApiError('pet_unavailable', `animal ${pet.id} has a placed order: deliver or cancel it first`);
    }
    tx.pets.delete(pet.id);
  });
  return noContent();
}
