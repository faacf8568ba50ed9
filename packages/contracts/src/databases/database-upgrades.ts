import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { databaseId, managedDatabaseSchema } from './databases';

const body = z.strictObject({
  engine_version: z
    .string()
    .max(32)
    .meta({ description: 'A newer major of the catalogue, exactly as it stands there' }),
});
const refusals = [
  'operation_in_progress',
  'needs_attention',
  'version_not_offered',
  'engine_differs',
  'version_not_newer',
  'never_backed_up',
  'database_not_available',
] as const;
const tags = ['Databases'] as const;

/** Endpoint 10 of interface.md. The specification gives it no 429, so it counts against no quota. */
export const upgradeDatabase = endpoint({
  id: 'upgradeDatabase',
  service: 'databases',
  method: 'POST',
  path: '/v1/databases/{databaseId}/upgrade',
  summary: 'Move the database to a newer major, with its address and every row kept',
  about:
    'A fresh backup is taken first. On the way that the preflight calls `logical` clients write on while the ' +
    'rows are copied, and connect again ' +
    'at the end; else they wait while the data is copied. ' +
    'A failure before the cutover leaves the old version serving. There is no way back to ' +
    'the older major but a restore of the backup.',
  permissions: ['databases.manage'],
  params: { databaseId },
  body,
  example: { engine_version: '17' },
  response: { status: 202, schema: managedDatabaseSchema },
  hasClosedStatuses: true,
  problems: refusals,
  quota: 'exempt',
  tags,
});

export const preflightDatabaseUpgrade = endpoint({
  id: 'preflightDatabaseUpgrade',
  service: 'databases',
  method: 'POST',
  path: '/v1/databases/{databaseId}/upgrade/preflight',
  summary:
    'What the upgrade would meet: its findings, the way it would take, the space it needs, the refusal it would get',
  permissions: ['databases.manage'],
  params: { databaseId },
  body,
  example: { engine_version: '17' },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  quota: 'exempt',
  tags,
});
