/** The settings of glibc's memory allocator that every deployment gives hosting-worker. */
export const workerEnvironment = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '16777216',
  MALLOC_TRIM_THRESHOLD_: '33554432',
};
