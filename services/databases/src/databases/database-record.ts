import {
  type getDatabase as getDatabaseEndpoint,
  listDatabases as listDatabasesEndpoint,
  type updateDatabase as updateDatabaseEndpoint,
  type ManagedDatabase as View,
} from '@drydock/contracts/databases/databases';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import { audit } from '@drydock/service/effects';
import { changeMetadata, type ExecuteHandlers, listFilter, type ReadHandlers } from '@drydock/service/http';
import type { WorkflowParent } from '@drydock/workflow/http';
import { findSize, findVersion } from '../catalogue/catalogue';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { describeDatabase, findDatabase, listDatabases as listRows, lockDatabase } from './database.store';
import { databasePath, databaseSubject, type ManagedDatabase, ownerOf } from './database.types';

interface AboutDatabase {
  caller: Caller;
  params: { databaseId: string };
}

/**
 * Reads the caller's database. Throws 404 if it does not exist, was deleted, or belongs to another organisation or
 * mode.
 */
export async function readDatabase(
  context: Pick<HandlerContext, 'database'>,
  { caller, params }: AboutDatabase,
): Promise<ManagedDatabase> {
  return present(await findDatabase(context.database.pool, ownerOf(caller), params.databaseId));
}

/** Reads the caller's database and locks its row until the transaction ends. Throws 404 like {@link readDatabase}. */
export async function holdDatabase(tx: Tx, { caller, params }: AboutDatabase): Promise<ManagedDatabase> {
  return present(await lockDatabase(tx, ownerOf(caller), params.databaseId));
}

function present(managed: ManagedDatabase | null): ManagedDatabase {
  if (managed === null) throw problem('database_not_found');
  return managed;
}

export const databaseParent = (context: HandlerContext): WorkflowParent<Tx, 'databaseId'> => ({
  context,
  param: 'databaseId',
  subjectOf: databaseSubject,
  assertThere: (caller, databaseId) => readDatabase(context, { caller, params: { databaseId } }),
});

/**
 * The database in the form of docs/spec/interface.md, section 2.8. Drydock sells nothing, so `order_line_id` and
 * `billing` are null.
 */
export function viewDatabase(managed: ManagedDatabase): View {
  const size = findSize(managed.size);
  return {
    id: managed.id,
    label: managed.label,
    engine: managed.engine,
    engine_version: managed.engineVersion,
    engine_label:
      findVersion(managed.engine, managed.engineVersion)?.label ?? `${managed.engine} ${managed.engineVersion}`,
    size: managed.size,
    status: managed.status,
    status_detail: managed.statusDetail,
    host: managed.host,
    port: managed.port,
    database_name: managed.databaseName,
    username: managed.username,
    high_availability: managed.highAvailability,
    vcpu: size?.vcpu ?? 0,
    ram_gb: size?.ram_gb ?? 0,
    storage_gb: size?.storage_gb ?? 0,
    tls_required: true,
    metadata: managed.metadata,
    created_at: managed.createdAt.toISOString(),
    last_backup_at: managed.lastBackupAt?.toISOString() ?? null,
    order_line_id: null,
    billing: null,
    restore_verified_at: managed.restoreVerifiedAt?.toISOString() ?? null,
  };
}

export const getDatabase = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: viewDatabase(await readDatabase(context, request)) }),
  }) satisfies ReadHandlers<typeof getDatabaseEndpoint>;

export const listDatabases = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: listDatabasesEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewDatabase }),
      };
    },
  }) satisfies ReadHandlers<typeof listDatabasesEndpoint>;

/** Changes the label and metadata. The row is locked, so that simultaneous changes do not overwrite each other. */
export const updateDatabase = ({ database }: HandlerContext) =>
  ({
    execute: async (tx: Tx, request) => {
      const { body, caller } = request;
      const held = await holdDatabase(tx, request);
      const { id, label, metadata } = held;
      await request.assertMatch(() => viewDatabase(held));
      const managed = await describeDatabase(tx, id, {
        label: body.label ?? label,
        metadata: changeMetadata(metadata, body.metadata),
      });
      const { orgId, mode, keyId: actorKeyId } = caller;
      await audit(database.sql(tx), {
        orgId,
        mode,
        actorKeyId,
        action: 'database.update',
        target: databasePath(id),
        workflowId: null,
      });
      return { status: 200, body: viewDatabase(managed) };
    },
  }) satisfies ExecuteHandlers<typeof updateDatabaseEndpoint, Tx, undefined>;
