import {
  type InTransaction,
  openPool,
  type PoolLimits,
  type PrismaDatabase,
  prismaDatabase,
} from '@drydock/service/database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The first parameter of a function that only reads: the pool or a transaction. */
export type Reader = Prisma.TransactionClient;
/** The first parameter of a function that writes or locks: a transaction. */
export type Tx = InTransaction<Reader>;

export type ComputeDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): ComputeDatabase =>
  prismaDatabase<Reader>(
    new PrismaClient({ adapter: new PrismaPg(openPool(url, limits), { disposeExternalPool: true }) }),
  );
