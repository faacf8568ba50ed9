import {
  type InTransaction,
  openPool,
  type PoolLimits,
  type PrismaDatabase,
  prismaDatabase,
} from '@drydock/service/database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The type of a store's first parameter if the store only reads: the pool or a transaction. */
export type Reader = Prisma.TransactionClient;
/** The type of a store's first parameter if the store writes or locks: a transaction. */
export type Tx = InTransaction<Reader>;

export type AgencyDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): AgencyDatabase =>
  prismaDatabase<Reader>(
    new PrismaClient({ adapter: new PrismaPg(openPool(url, limits), { disposeExternalPool: true }) }),
  );
