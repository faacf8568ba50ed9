import {
  type InTransaction,
  openPool,
  type PoolLimits,
  type PrismaDatabase,
  prismaDatabase,
} from '@drydock/service/database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The pool or a transaction. Store functions that only read accept both. */
export type Reader = Prisma.TransactionClient;
/** A transaction, which store functions that write or lock require. */
export type Tx = InTransaction<Reader>;

export type HostingDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): HostingDatabase =>
  prismaDatabase<Reader>(
    new PrismaClient({ adapter: new PrismaPg(openPool(url, limits), { disposeExternalPool: true }) }),
  );
