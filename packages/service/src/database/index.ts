export { classifyDatabaseError } from './database-error';
export { openPool, type PoolLimits, pgDatabase } from './pool';
export {
  carrying,
  createdBetween,
  holding,
  lockRow,
  oneOf,
  type PrismaDatabase,
  prismaDatabase,
} from './prisma';
export { type Database, type InTransaction, type Sql, uuidv7Sql } from './sql';
