/** The parts of an OpenAPI 3.1 document that the reference shows. */

export interface Ref {
  $ref: string;
}

export interface Schema {
  type?: string | string[];
  format?: string;
  enum?: string[];
  anyOf?: (Schema | Ref)[];
  allOf?: (Schema | Ref)[];
  items?: Schema | Ref;
  properties?: Record<string, Schema | Ref>;
  required?: string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  default?: unknown;
  description?: string;
}

export interface Parameter<S = Schema> {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: S;
  example?: unknown;
}

export interface Media {
  schema?: Schema | Ref;
  example?: unknown;
  examples?: Record<string, { value: unknown } | Ref>;
}

export interface Response {
  description: string;
  content?: Record<string, Media>;
}

export interface Operation {
  operationId: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  tags: string[];
  parameters?: (Parameter<Schema | Ref> | Ref)[];
  requestBody?: { content: Record<string, Media> } | Ref;
  responses: Record<string, Response | Ref>;
  'x-sunset'?: string;
}

export interface Document {
  info: { description: string };
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
}
