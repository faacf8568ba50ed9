import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { pageOf, pageQuerySchema, text, timestampSchema } from '../platform/values';
import { acceptedWork } from '../platform/workflows';
import { computeServerSchema, serverId } from './compute-servers';

/**
 * A snapshot of a server. `id` is the provider's. It is empty only in the answer to a call that takes a snapshot, if
 * the provider has not given the snapshot an id yet.
 */
export const serverSnapshotSchema = z
  .strictObject({
    id: z
      .string()
      .describe(
        "The provider's own id. Empty only in the answer to an order whose number the provider has not told yet.",
      ),
    description: z.string().describe('As it was given.'),
    status: z.enum(['creating', 'available', 'unavailable']).describe('Only an available one can be rolled back to.'),
    created_at: timestampSchema.describe('When the provider took it.'),
    size_gb: z
      .number()
      .min(0)
      .nullable()
      .describe('Size at the provider in GB (10^9 bytes); null while it is not known.'),
  })
  .meta({ id: 'ServerSnapshot' });
export type ServerSnapshot = z.infer<typeof serverSnapshotSchema>;

export const acceptedServerSnapshotSchema = serverSnapshotSchema
  .extend(acceptedWork)
  .meta({ id: 'AcceptedServerSnapshot' });

/**
 * The snapshot that a call acts on. Snapshots are records of the provider, not ours. So an id that names no snapshot of
 * this server is answered with 422. Only the GET of a single snapshot answers 404.
 */
const snapshotId = {
  schema: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be a snapshot's id as the list gives it")
    .describe("The provider's own id of the snapshot."),
  notNamed: 'snapshot_not_on_server',
} as const;
const path = '/v1/compute/servers/{serverId}/snapshots';
const rollbackProblems = [
  'operation_in_progress',
  'needs_attention',
  'snapshot_not_on_server',
  'snapshot_not_ready',
  'server_not_operable',
  'snapshots_unsupported',
  'rebuild_protected',
  'newer_snapshots_exist',
  'snapshot_incompatible',
] as const;
const tags = ['Server snapshots'] as const;

export const listServerSnapshots = endpoint({
  id: 'listServerSnapshots',
  service: 'compute',
  method: 'GET',
  path,
  summary: "The provider's snapshots that were made from this server, newest first",
  permissions: ['sites.view'],
  params: { serverId },
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(serverSnapshotSchema) },
  problems: [],
  tags,
});

export const getServerSnapshot = endpoint({
  id: 'getServerSnapshot',
  service: 'compute',
  method: 'GET',
  path: `${path}/{snapshotId}`,
  summary: 'One snapshot of this server, as the provider knows it now; poll it while its status is creating',
  permissions: ['sites.view'],
  params: { serverId, snapshotId: { schema: snapshotId.schema, notFound: 'server_snapshot_not_found' } },
  response: { status: 200, schema: serverSnapshotSchema },
  problems: [],
  tags,
});

export const takeServerSnapshot = endpoint({
  id: 'takeServerSnapshot',
  service: 'compute',
  method: 'POST',
  path,
  summary: 'Take a snapshot of the disk; it can be rolled back to once its status is available',
  about: 'The server goes on running. What its programs hold in memory is not in the snapshot.',
  permissions: ['sites.view', 'sites.create'],
  params: { serverId },
  body: z.strictObject({ description: text(200).optional().describe('1 to 200 characters, to tell it apart by.') }),
  example: { description: 'before the relaunch' },
  response: { status: 202, schema: acceptedServerSnapshotSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'server_not_operable',
    'snapshots_unsupported',
    'quota_exceeded',
  ],
  tags,
});

export const deleteServerSnapshot = endpoint({
  id: 'deleteServerSnapshot',
  service: 'compute',
  method: 'DELETE',
  path: `${path}/{snapshotId}`,
  summary: 'Delete a snapshot; the server keeps what is on its disk',
  permissions: ['sites.view', 'sites.delete'],
  params: { serverId, snapshotId },
  response: { status: 204 },
  problems: ['operation_in_progress', 'needs_attention', 'snapshot_not_on_server', 'snapshot_protected'],
  tags,
});

/** Endpoint 8 of interface.md. */
export const rollBackComputeServer = endpoint({
  id: 'rollBackComputeServer',
  service: 'compute',
  method: 'POST',
  path: `${path}/{snapshotId}`,
  summary: 'Overwrite the live disk with the snapshot; everything written since is lost, and there is no undo',
  permissions: ['sites.view', 'sites.delete'],
  params: { serverId, snapshotId },
  response: { status: 202, schema: computeServerSchema },
  problems: rollbackProblems,
  tags,
});

export const preflightComputeServerRollback = endpoint({
  id: 'preflightComputeServerRollback',
  service: 'compute',
  method: 'POST',
  path: `${path}/{snapshotId}/preflight`,
  summary: 'What a rollback would overwrite, and the refusal it would give; changes nothing',
  permissions: ['sites.view', 'sites.delete'],
  params: { serverId, snapshotId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});
