/** Animals: validation, and the handlers of their endpoints. */
import { digits } from '../digits.ts';
import { taggedReply } from '../http/conditions.ts';
import { ApiError } from '../http/errors.ts';
import { jsonReply, type Reply, type TaggedReply } from '../http/reply.ts';
import { refuseParameters } from '../http/request.ts';
import type { Int64 } from '../json/int64.ts';
import { Members } from '../json/members.ts';
import { type JsonValue, readJson } from '../json/reader.ts';
import { type Ahead, type FirstResult, type NewPet, PET_STATUSES, type Pet, type Whole } from '../store/model.ts';
import { type Call, idParam, notFound, type ReadCall, type Shop } from './call.ts';
import { makeIdempotently, replayed } from './idempotency.ts';
import { firstAfter, pageReply, readPageRequest } from './paging.ts';

export const NAME_LENGTH = { min: 1, max: 255 };

/** When `GET /v1/pets/{petId}` was deprecated. */
const DEPRECATED_AT = Date.UTC(2025, 11, 5);
/** From this moment on, that endpoint answers 410. */
const REMOVED_AT = Date.UTC(2030, 11, 5);

export const GET_PET_HEADERS = [
  'Deprecation',
  `@${DEPRECATED_AT / 1000}`,
  'Sunset',
  new Date(REMOVED_AT).toUTCString(),
  'Link',
  '</v1/pets>; rel="successor-version"',
];

export function listPets(shop: Shop, call: ReadCall): TaggedReply {
  const { pets } = shop.store.read;
  return shop.lists.cached(call.query, pets.version, () => {
    const page = readPageRequest(call.query, PET_STATUSES);
    return pageReply('/v1/pets', page, pets.page(firstAfter(page.after), page.limit, page.status), petJson);
  });
}

export function createPet(shop: Shop, call: Call): Promise<Reply> {
  const body = readJson(call.body);
  refuseParameters(call.query);
  const wanted = readNewPet(shop, body);
  const by = call.caller.id; // a copy: the waiting write must not keep `call` and its body in memory
  const again = (ahead: Ahead, made: FirstResult) => {
    const pet = asMade(ahead, made);
    return saysTheSame(pet, wanted) && pet;
  };
  return makeIdempotently(shop, call, 'addPet', again, (ahead, once) => {
    if (shop.categories === 'known' && ahead.categories.get(wanted.categoryId) === undefined) {
      throw new ApiError('invalid_body', noCategory(wanted.categoryId));
    }
    const { name, categoryId, status } = wanted;
    return { op: 'addPet', pet: { id: ahead.counters.nextPetId, name, categoryId, status }, once, by };
  }).then((done) => (done.op === 'addPet' ? created(done.pet) : replayed(created(done.row))));
}

/** The animal as it was when it was made. */
function asMade({ pets }: Pick<Ahead, 'pets'>, { id, status }: FirstResult): Pet {
  return { ...(pets.get(id) as Pet), status: status as Pet['status'] };
}

export function getPet(shop: Shop, call: ReadCall): TaggedReply {
  // Without a lab nobody could see or undo the advance.
  const advanceMs = shop.hasLab ? (call.caller.clockAdvanceMs ?? 0) : 0;
  if (shop.clock.wall() + advanceMs >= REMOVED_AT) {
    throw new ApiError('gone', 'this operation was removed; use GET /v1/pets with a status filter');
  }
  refuseParameters(call.query);
  const { pets } = shop.store.read;
  return shop.animals.cached(call.param, pets.version, () => {
    const pet = pets.get(idParam(call.param));
    if (pet === undefined) throw notFound('animal');
    return taggedReply(petJson(pet), GET_PET_HEADERS);
  });
}

/** Reads a NewPet. Throws all violations in one message. If only the category is unknown, the write throws that. */
function readNewPet({ store, categories }: Shop, value: JsonValue): NewPet {
  const members = new Members(value);
  const name = members.text('name', NAME_LENGTH);
  const isMissing = (id: Int64) => categories === 'known' && store.read.categories.get(id) === undefined;
  const categoryId = members.int64('categoryId', (id) => (isMissing(id) ? noCategory(id) : undefined));
  const status = members.oneOf('status', PET_STATUSES, 'available');
  members.end({ id: 'is given by the service; leave it out' });
  return { name, categoryId, status };
}

function noCategory(id: Int64): string {
  return `categoryId: there is no category ${id}`;
}

export function petJson(pet: Whole<Pet, 'id' | 'name' | 'categoryId' | 'status'>): string {
  const { id, name, categoryId, status } = pet;
  return `{"id":${digits(id)},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`;
}

function created(pet: Pet): Reply {
  return jsonReply(201, petJson(pet), ['Location', `/v1/pets/${digits(pet.id)}`]);
}

function saysTheSame(first: Pet, wanted: Whole<NewPet, 'name' | 'categoryId' | 'status'>): boolean {
  return first.name === wanted.name && first.categoryId === wanted.categoryId && first.status === wanted.status;
}
