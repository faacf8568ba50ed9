import { readFileSync } from 'node:fs';
import path from 'node:path';
import { endpoints } from '../endpoints';
import { breakingChanges, type Surface, surfaceOf } from './breaking-changes';
import { buildOpenApi } from './openapi';

const current = surfaceOf(buildOpenApi(endpoints));
const released: Surface = JSON.parse(readFileSync(path.join(__dirname, '../../../../docs/released-api.json'), 'utf8'));
const restore = 'POST /v1/sites/{siteId}/backups/restore';
const created = 'POST /v1/sites';

it('the API breaks no caller of the last release, which only `npm run openapi -- --release` writes', () => {
  expect(Object.keys(released).length).toBeGreaterThan(90);
  expect(breakingChanges(released, current)).toEqual([]);
});

/** `current` with one operation changed. */
const changed = (
  operation: string,
  change: (surface: { needs: string[]; takes: Record<string, string>; gives: Record<string, string> }) => void,
) => {
  const copy = structuredClone(current) as Record<
    string,
    { needs: string[]; takes: Record<string, string>; gives: Record<string, string>; status: string[] }
  >;
  const surface = copy[operation];
  if (surface === undefined) throw new Error(`there is no ${operation}`);
  change(surface);
  return copy;
};

it.each<[string, string, Parameters<typeof changed>[1], string[]]>([
  ['a new field that is needed', created, ({ needs }) => needs.push('owner'), [`${created} needs owner now`]],
  [
    'a field of the body that is gone',
    created,
    ({ takes }) => delete takes['plan.daily_backups'],
    [`${created} takes plan.daily_backups no more`],
  ],
  [
    'a value that is taken no more',
    created,
    ({ takes }) => Object.assign(takes, { platform: '"local"' }),
    [`${created} takes platform as "local", and no more as "ssh" | "vendor"`],
  ],
  [
    'a field of the answer that is gone',
    restore,
    ({ gives }) => delete gives['backups[].id'],
    [`${restore} answers backups[].id no more`],
  ],
  [
    'an answer of another type',
    restore,
    ({ gives }) => Object.assign(gives, { on_demand_limit: 'string' }),
    [`${restore} answers on_demand_limit as string, and was integer`],
  ],
  [
    'an answer that can be null',
    created,
    ({ gives }) => Object.assign(gives, { url: 'string | null' }),
    [`${created} answers url as string | null, and was string`],
  ],
  [
    'a new value of an enumeration',
    created,
    ({ gives }) => Object.assign(gives, { status: `${gives['status']} | "paused"` }),
    [],
  ],
  ['a new field of the answer', created, ({ gives }) => Object.assign(gives, { colour: 'string' }), []],
  ['a new field that may be left out', created, ({ takes }) => Object.assign(takes, { colour: 'string' }), []],
])('tells %s', (_what, operation, change, expected) => {
  expect(breakingChanges(current, changed(operation, change))).toEqual(expected);
});

it('reports a removed operation, and no new operation', () => {
  const { [restore]: _gone, ...without } = current;
  expect(breakingChanges(current, without)).toEqual([`${restore} is gone`]);
  expect(breakingChanges(without, current)).toEqual([]);
});
