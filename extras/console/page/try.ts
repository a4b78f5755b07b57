/** Any request, as it is typed. The address can fill it in: `#try?method=PATCH&path=/v1/pets/7&body=…`. */
import { announce, el } from './dom.ts';
import { Form, select, textInput } from './form.ts';
import { address } from './list.ts';
import { replyTo } from './requests.ts';
import { call, postOnce } from './wire.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** Offered where the path is typed. */
const PATHS = [
  '/v1/pets',
  '/v1/pets/1',
  '/v1/store/orders',
  '/v1/store/orders/1',
  '/v1/categories',
  '/v1/categories/1',
];

/** The address of this view with a request filled in. */
export const tryLink = (method: string, path: string, body: string): string =>
  `#try?${new URLSearchParams({ method, path, body })}`;

const hasBody = (method: string): boolean => method !== 'GET' && method !== 'DELETE';

const suggestions = el('datalist', { id: 'paths' }, ...PATHS.map((value) => el('option', { value })));
const reply = el('div', { class: 'reply' });

const form = new Form({
  title: 'Try a request',
  button: 'Send',
  fields: [
    { name: 'method', label: 'Method', control: select(METHODS, { on: { change: () => showBody() } }) },
    {
      name: 'path',
      label: 'Path',
      control: textInput({ list: suggestions.id, spellcheck: 'false' }),
      needed: 'Enter a path.',
    },
    { name: 'body', label: 'Body, as JSON', control: el('textarea', { rows: 5, spellcheck: 'false' }) },
  ],
  submit: async ({ method: { value: method }, path: { value: path }, body: { value: body } }) => {
    const content = hasBody(method) ? body : undefined;
    const came = await (method === 'POST' ? postOnce(path, body) : call(method, path, { body: content }));
    if (came === undefined) return undefined; // the banner says why
    reply.replaceChildren(el('h3', { text: 'Reply' }), ...replyTo(came.exchange));
    announce(came.status === 0 ? came.message : `The reply is ${came.status}. ${came.message}`);
    return undefined; // it is shown whole, not as a message of the form
  },
  done: () => '',
});
const { method, path, body } = form.controls;

function showBody(): void {
  const box = body.closest<HTMLElement>('.field');
  if (box) box.hidden = !hasBody(method.value);
}

let filled: string | undefined;

/** What was typed stays until the address asks for something else. */
function fill(): void {
  const { query } = address();
  const isAsked = query.size > 0 && location.hash !== filled;
  if (filled !== undefined && !isAsked) return;
  filled = location.hash;
  method.value = query.get('method') ?? 'GET';
  path.value = query.get('path') ?? PATHS[0];
  body.value = query.get('body') ?? '';
  reply.replaceChildren();
  showBody();
}

const about = el(
  'p',
  { class: 'hint' },
  'Any request to the service; ',
  el('a', { href: '/openapi.json', text: '/openapi.json' }),
  ' describes them all: PATCH changes an animal, DELETE removes it. A POST gets an Idempotency-Key: sent again after a lost reply, it makes no second thing.',
);

export const tryView = {
  title: 'Try',
  parts: [about, form.element, suggestions, reply],
  show: fill,
  clear: () => reply.replaceChildren(),
};
