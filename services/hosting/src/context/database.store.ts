import {
  type InTransaction,
  type PoolLimits,
  type PrismaDatabase,
  poolConfig,
  prismaDatabase,
} from '@drydock/service/database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The pool or a transaction, as stores that only read take it. */
export type Reader = Prisma.TransactionClient;
/** A transaction, as stores that write or lock take it. */
export type Tx = InTransaction<Reader>;

export type HostingDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): HostingDatabase =>
  prismaDatabase<Reader>(new PrismaClient({ adapter: new PrismaPg(poolConfig(url, limits)) }));
