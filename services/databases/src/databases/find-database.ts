import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access/internal-token';
import { type HandlerContext, ownerOf } from '../context';
import type { Tx } from '../database.store';
import { findDatabase, lockDatabase } from './database.store';
import type { ManagedDatabase } from './database.types';

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

/** The same, with the row locked until the transaction ends. */
export async function holdDatabase(tx: Tx, { caller, params }: AboutDatabase): Promise<ManagedDatabase> {
  return present(await lockDatabase(tx, ownerOf(caller), params.databaseId));
}

function present(managed: ManagedDatabase | null): ManagedDatabase {
  if (managed === null) throw problem('database_not_found');
  return managed;
}
