import {
  type InTransaction,
  openPool,
  type PoolLimits,
  type PrismaDatabase,
  prismaDatabase,
} from '@drydock/service/database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from '../generated/prisma/client';

/** The pool or a transaction. Functions of a store that only read through Prisma take it as their first parameter. */
export type Reader = Prisma.TransactionClient;
/** A transaction. Functions of a store that write or lock through Prisma take it as their first parameter. */
export type Tx = InTransaction<Reader>;

export type KeysDatabase = PrismaDatabase<Reader>;

export const openDatabase = (url: string, limits: PoolLimits): KeysDatabase =>
  prismaDatabase<Reader>(
    new PrismaClient({ adapter: new PrismaPg(openPool(url, limits), { disposeExternalPool: true }) }),
  );
