/** How C's allocator is set for the hosting worker by the supervisor and by docker-compose.yml. */
export const workerEnvironment = { MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '16777216', MALLOC_TRIM_THRESHOLD_: '33554432' };
