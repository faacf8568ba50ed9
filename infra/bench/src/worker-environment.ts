/**
 * Settings of glibc's memory allocator. The supervisor and docker-compose.yml give the hosting worker the same values.
 */
export const workerEnvironment = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '16777216',
  MALLOC_TRIM_THRESHOLD_: '33554432',
};
