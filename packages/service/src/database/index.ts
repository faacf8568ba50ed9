export { classifyDatabaseError } from './database-error';
export { carrying, createdBetween, holding, oneOf } from './list-filter';
export { openPool, type PoolLimits, pgDatabase } from './pool';
export { lockRow, type PrismaDatabase, prismaDatabase } from './prisma-database';
export { type Database, type InTransaction, type Sql, uuidv7Sql } from './sql';
