export { audit, auditing, auditOutbox, secondsSince, timestampSql } from './audit';
export { Bell } from './bell';
export { createIdempotencyPurge, purgeIdempotency } from './idempotency';
export { createOutboxDelivery, type Outbox, type OutboxRow } from './outbox-delivery';
export { type Fullness, keepWatchingStorage, storageStateOf, type WatchedStorage, watchStorage } from './watch-storage';
