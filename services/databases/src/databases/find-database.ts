import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { WorkflowParent } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { findDatabase, lockDatabase } from './database.store';
import { databaseSubject, type ManagedDatabase, ownerOf } from './database.types';

interface AboutDatabase {
  caller: Caller;
  params: { databaseId: string };
}

/** The caller's database. Throws the same 404 in every other case. */
export async function readDatabase(
  context: Pick<HandlerContext, 'database'>,
  { caller, params }: AboutDatabase,
): Promise<ManagedDatabase> {
  return present(await findDatabase(context.database.pool, ownerOf(caller), params.databaseId));
}

/** Reads the caller's database as {@link readDatabase} does, and locks its row until the transaction ends. */
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
