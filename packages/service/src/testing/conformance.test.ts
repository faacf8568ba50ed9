import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from '@drydock/contracts/endpoints';
import { conformanceChecks } from './conformance';

const services = [...new Set(endpoints.map(({ service }) => service))];

describe('the conformance suite', () => {
  it('is run by each service that the contract knows', () => {
    const isRunBy = (service: string): boolean => {
      const file = path.join(__dirname, '../../../../services', service, 'src/conformance.test.ts');
      return existsSync(file) && readFileSync(file, 'utf8').includes(`it.each(conformanceChecks('${service}')`);
    };
    expect(services.filter((service) => !isRunBy(service))).toEqual([]);
  });

  it('has the checks that apply to each operation of the contract', () => {
    const names = services.flatMap((service) => conformanceChecks(service)).map(({ name }) => name);
    const has = (id: string, rule: string): boolean => names.some((name) => name.startsWith(`${id}: ${rule}`));
    const unchecked = endpoints.filter(
      ({ id, path, permissions, idempotency, query }) =>
        !has(id, 'it succeeds as its contract says') ||
        !has(id, 'an undeclared query parameter') ||
        has(id, 'a permission that is missing') !== permissions.length > 0 ||
        has(id, 'a malformed id') !== path.includes('{') ||
        has(id, 'an Idempotency-Key') !== (idempotency === 'accepted') ||
        has(id, 'a filter gives') !==
          (query !== undefined && ('created_after' in query.shape || 'text' in query.shape)) ||
        has(id, 'it pages') !== (query !== undefined && 'limit' in query.shape),
    );
    expect(unchecked.map(({ id }) => id)).toEqual([]);
  });
});
