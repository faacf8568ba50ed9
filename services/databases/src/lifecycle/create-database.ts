import {
  type CreatedDatabase,
  type createDatabase as endpoint,
  managedDatabaseSchema,
} from '@drydock/contracts/databases/databases';
import { type Major, majorOf } from '@drydock/contracts/databases/major';
import type { BodyOf } from '@drydock/contracts/platform/endpoint';
import { metadataSchema } from '@drydock/contracts/platform/values';
import { assertWithinQuota, changeMetadata, type ExecuteHandlers } from '@drydock/service/http';
import type { Refusal } from '@drydock/workflow/definition';
import { acceptWorkflow, assertAllowed, followHeaders } from '@drydock/workflow/http';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { findBackupOf, keepBackup } from '../backups/backup.store';
import { catalogueOf, findSize, findVersion, majorsFor, sizeCodes } from '../catalogue/catalogue';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { findDatabase, insertDatabase } from '../databases/database.store';
import { databasePath, type ManagedDatabase, onDatabase, ownerOf } from '../databases/database.types';
import { viewDatabase } from '../databases/database-record';
import { refuseOrigin } from '../restores/restore.rules';
import { createDatabaseWorkflow } from './create-database.workflow';
import { createFromBackupWorkflow } from './create-from-backup.workflow';

type Names = Pick<ManagedDatabase, 'databaseName' | 'username'>;

/** The answer that is stored for a replay. Answers that older versions of Drydock stored have no `metadata`. */
const storedSchema = managedDatabaseSchema.extend({
  metadata: metadataSchema.default({}),
  made_with: z.string().optional(),
});

export const createDatabase = (context: HandlerContext) =>
  ({
    preload: async ({ body }) => majorsFor(context, body),
    execute: async (tx: Tx, request, majors) => {
      const { body, caller, now } = request;
      assertAllowed(refuseOrder(body, majors));
      const from = body.from?.backup_id;
      // The lock waits for a deletion of the backup that is being accepted. The backup is read afterwards, so that a
      // deleted one is not found.
      if (from !== undefined) await keepBackup(tx, ownerOf(caller), from);
      const origin = from === undefined ? null : await findBackupOf(tx, ownerOf(caller), from);
      const source = origin === null ? null : await findDatabase(tx, ownerOf(caller), origin.databaseId);
      if (from !== undefined)
        assertAllowed(
          refuseOrigin(
            { backup: origin, sourceGb: storageOf(source?.size) },
            { version: body.engine_version, storageGb: storageOf(body.size) },
          ),
        );
      await assertWithinQuota(context.database.sql(tx), context.quota, ownerOf(caller));
      const id = uuidv7();
      const names = namesOf(id, body.engine === 'postgres' ? null : source);
      const managed = await insertDatabase(tx, {
        id,
        ...ownerOf(caller),
        ...names,
        label: body.label,
        engine: body.engine,
        engineVersion: body.engine_version,
        size: body.size,
        highAvailability: false,
        metadata: changeMetadata({}, body.metadata),
        createdAt: now,
      });
      const { passwords } = context;
      const passwordOf = passwords.areRotated ? { passwordMadeWith: passwords.madeWith } : {};
      const input = { major: majorOf(body.engine_version), size: body.size, ...names, ...passwordOf };
      const work =
        from === undefined
          ? { definition: createDatabaseWorkflow, input }
          : { definition: createFromBackupWorkflow, input: { ...input, backupId: from } };
      const workflowId = await acceptWorkflow(context, tx, request, {
        ...onDatabase(id),
        ...work,
        action: 'database.create',
      });
      const created = { ...viewDatabase(managed), password: passwords.of(id) };
      return { status: 202, headers: followHeaders(databasePath(id), workflowId), body: created };
    },
    replaySecret: {
      remove: ({ password: _password, ...managed }: CreatedDatabase) => ({
        ...managed,
        made_with: context.passwords.madeWith,
      }),
      rehydrate: (stored): CreatedDatabase => {
        const { made_with: madeWith, ...managed } = storedSchema.parse(stored);
        return { ...managed, password: context.passwords.of(managed.id, madeWith) };
      },
    },
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, readonly Major[]>;

/** Refuses a database that cannot be made as requested. `majors` are the majors whose programs the agent has. */
export function refuseOrder(order: Omit<BodyOf<typeof endpoint>, 'label'>, majors: readonly Major[]): Refusal | null {
  const { engine, engine_version, size, high_availability } = order;
  if (findVersion(engine, engine_version) === undefined) return { code: 'version_not_offered' };
  const offered = catalogueOf(majors).engines.find((one) => one.engine === engine);
  if (offered === undefined) return { code: 'engine_not_offered' };
  if (!offered.versions.some(({ version }) => version === engine_version)) return { code: 'version_not_offered' };
  if (findSize(size) === undefined) return { code: 'size_not_offered', extra: { sizes: sizeCodes } };
  return high_availability ? { code: 'high_availability_unavailable' } : null;
}

/** The storage of a size in GB; 0 for a size that is not in the catalogue. */
const storageOf = (size: string | undefined): number => findSize(size ?? '')?.storage_gb ?? 0;

/**
 * Names a database and its user after the random end of the database's id. A database that is made from a backup of
 * MySQL or MariaDB gets the names in the backup, because the backup's stored programs contain them.
 */
function namesOf(id: string, source: Names | null): Names {
  if (source !== null) return { databaseName: source.databaseName, username: source.username };
  const tail = id.replaceAll('-', '').slice(-12);
  return { databaseName: `db_${tail}`, username: `u_${tail}` };
}
