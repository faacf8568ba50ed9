import { classifyDatabaseError } from './database-error';

/** An error of adapter-pg, as Prisma's model methods report it. */
const ofModel = (code: string, cause: object): Error =>
  Object.assign(new Error('Invalid `board.create()` invocation'), {
    code,
    meta: { driverAdapterError: { name: 'DriverAdapterError', cause } },
  });
const ofPostgres = (sqlState: string, message: string) => ({
  originalCode: sqlState,
  originalMessage: message,
  kind: 'postgres',
  code: sqlState,
  message,
});

test.each([
  [
    'a value that Postgres cannot hold',
    ofModel('P2039', ofPostgres('22008', 'date/time field value out of range')),
    'other',
  ],
  ['a broken constraint', ofModel('P2039', ofPostgres('23514', 'violates check constraint')), 'other'],
  [
    'two cards at one place',
    ofModel('P2039', ofPostgres('23P01', 'conflicting key value violates exclusion constraint')),
    'other',
  ],
  ['a held lock', ofModel('P2039', ofPostgres('55P03', 'canceling statement due to lock timeout')), 'unavailable'],
  [
    'a shutdown',
    ofModel('P2039', ofPostgres('57P01', 'terminating connection due to administrator command')),
    'unavailable',
  ],
  ['a deadlock', ofModel('P2034', ofPostgres('40P01', 'deadlock detected')), 'conflict'],
  ['a lost connection', ofModel('P2039', { kind: 'unknown' }), 'unavailable'],
  ['a refused connection', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'unavailable'],
  ['a name that is taken', ofModel('P2002', { originalCode: '23505', kind: 'UniqueConstraintViolation' }), 'unique'],
  ['a bug', new TypeError('x is undefined'), 'other'],
])('%s is neither hidden as an outage nor told as a bug', (_name, error, kind) => {
  expect(classifyDatabaseError(error)).toBe(kind);
});
