import { endpoints } from '@drydock/contracts/endpoints';
import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { permissions } from '@drydock/contracts/platform/permissions';
import { uuidv7 } from 'uuidv7';
import type { Caller } from '../access/internal-token';
import type { ServiceAnswer } from './call-service';
import type { ServiceApi } from './service-api';

/** Every endpoint of a service, read from the contract, so that a new endpoint is tested with the others. */
export const endpointsOf = (service: EndpointDefinition['service']): EndpointDefinition[] =>
  endpoints.filter((endpoint) => endpoint.service === service);

/** Rows for `it.each` with the name first. */
export const rowsOf = (asked: readonly EndpointDefinition[]): (readonly [string, EndpointDefinition])[] =>
  asked.map((endpoint) => [endpoint.id, endpoint]);

/** A caller with every permission except those of this operation. */
export const notAllowed = (caller: Caller, { permissions: needed }: EndpointDefinition): Caller => ({
  ...caller,
  scopes: permissions.filter((held) => !needed.includes(held)),
});

export interface Asked {
  /** Values of `{name}` in the path. Names that are left out get the id of no record. */
  params?: Readonly<Record<string, string>>;
  body?: object | undefined;
  caller?: Caller;
}

export const askEndpoint = (
  api: ServiceApi,
  endpoint: EndpointDefinition,
  { params = {}, body, caller = api.caller }: Asked,
): Promise<ServiceAnswer> => {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_placeholder, name: string) => params[name] ?? uuidv7());
  return api.call(endpoint.method, path, { body, caller });
};

/** Texts that are not ids, in the forms in which paths may contain them. */
export const malformed = [
  'x',
  '%20',
  '%00',
  '..%5cx',
  uuidv7().replace(/(?<=^.{14})7/, '4'),
  `${uuidv7()}%0a`,
  `{${uuidv7()}}`,
  'a'.repeat(300),
];

export const parametersOf = ({ path }: EndpointDefinition): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => name ?? []);
