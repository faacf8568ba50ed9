/** The settings of C's allocator that the supervisor and docker-compose.yml give the hosting worker. */
export const workerEnvironment = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '16777216',
  MALLOC_TRIM_THRESHOLD_: '33554432',
};
