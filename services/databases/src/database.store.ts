import { poolConfig } from '@drydock/database/pool';
import { prismaDatabase } from '@drydock/database/prisma-database';
import type { Database } from '@drydock/database/sql';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from './generated/prisma/client';

/** A transaction, or the pool itself, as the stores take it. */
export type Tx = Prisma.TransactionClient;

export interface DatabasesDatabase extends Database<Tx> {
  /** The pool, for a look-up that needs no transaction. */
  pool: Tx;
  close(): Promise<void>;
}

export function openDatabase(url: string, limits: { max: number; applicationName: string }): DatabasesDatabase {
  const client = new PrismaClient({ adapter: new PrismaPg(poolConfig(url, limits)) });
  return { ...prismaDatabase<Tx>(client), pool: client, close: () => client.$disconnect() };
}
