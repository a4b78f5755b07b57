import { examples, responses } from './openapi/errors.ts';
import { headers, parameters } from './openapi/headers.ts';
import { paths } from './openapi/operations.ts';
import { schemas } from './openapi/schemas.ts';

const DESCRIPTION = `A catalogue of animals, their categories, and orders for them.

**Keys.** Every operation takes an API key as the bearer token. The operator issues keys.

**Limits.** Each key has a window of a minute and one of a day, by its plan: Free 60 and 1,000 requests, Pro 300 and
10,000, Business 1,000 and 100,000, Enterprise as agreed. Every reply says what is left. Over a limit the reply is 429
with \`Retry-After\`; who keeps asking regardless is banned for a while.

**Pages.** Lists run by ascending id. \`Link: <…>; rel="next"\` is there as long as more follow.

**Integers.** Identifiers are 64-bit integers and exact to the last digit. Read them with more than a double.

**Errors.** Every error reply is \`{"code","message","status"}\`; \`code\` is one of a fixed list.

**Stability.** What is marked \`x-stability: experimental\` may change. \`HEAD\` works wherever \`GET\` does.`;

/** The interface description, OpenAPI 3.1. Both addresses end in `/v1`. */
export function openapiDocument(servers: { baseUrl: string; stagingBaseUrl: string }): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Pet Store',
      version: '1.0.0',
      summary: 'Animals, categories and orders',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      { url: servers.baseUrl, description: 'Production' },
      { url: servers.stagingBaseUrl, description: 'Staging' },
    ],
    security: [{ bearerAuth: [] }],
    tags: [
      { name: 'Animals', description: 'The catalogue.' },
      { name: 'Orders', description: 'Experimental: the way of an animal from the store to its new home.' },
      { name: 'Categories', description: 'Experimental: names for the categories that animals refer to.' },
    ],
    paths,
    components: {
      securitySchemes: {
        bearerAuth: { type: 'http', scheme: 'bearer', description: 'Authorization: Bearer <API key>' },
      },
      schemas,
      parameters,
      headers,
      examples,
      responses,
    },
  };
}
