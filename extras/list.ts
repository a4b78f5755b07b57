/** What the program has beside the service: for each extra a folder, and a line here. */
export { console } from './console/extra.ts';
export { postgres } from './postgres/extra.ts';
