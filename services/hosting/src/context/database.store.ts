import {
  type InTransaction,
  openPool,
  type PoolLimits,
  type PrismaDatabase,
  prismaDatabase,
} from '@drydock/service/database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The pool or a transaction. It is the parameter of store functions that only read. */
export type Reader = Prisma.TransactionClient;
/** A transaction. It is the parameter of store functions that write or lock. */
export type Tx = InTransaction<Reader>;

export type HostingDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): HostingDatabase =>
  prismaDatabase<Reader>(
    new PrismaClient({ adapter: new PrismaPg(openPool(url, limits), { disposeExternalPool: true }) }),
  );
