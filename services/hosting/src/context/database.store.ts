import { type PoolLimits, poolConfig } from '@drydock/service/database/pool';
import { type PrismaDatabase, prismaDatabase } from '@drydock/service/database/prisma-database';
import type { InTransaction } from '@drydock/service/database/sql';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The pool or a transaction, as stores that only read take it. */
export type Reader = Prisma.TransactionClient;
/** A transaction, as stores that write or lock take it. */
export type Tx = InTransaction<Reader>;

export type HostingDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): HostingDatabase =>
  prismaDatabase<Reader>(new PrismaClient({ adapter: new PrismaPg(poolConfig(url, limits)) }));
