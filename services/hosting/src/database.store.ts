import { type PoolLimits, poolConfig } from '@drydock/service/database/pool';
import { type PrismaDatabase, prismaDatabase } from '@drydock/service/database/prisma-database';
import { PrismaPg } from '@prisma/adapter-pg';
import { type Prisma, PrismaClient } from './generated/prisma/client';

/** A transaction, or the pool itself, as the stores take it. */
export type Tx = Prisma.TransactionClient;

export type HostingDatabase = PrismaDatabase<Tx>;

export const openDatabase = (url: string, limits: PoolLimits): HostingDatabase =>
  prismaDatabase<Tx>(new PrismaClient({ adapter: new PrismaPg(poolConfig(url, limits)) }));
