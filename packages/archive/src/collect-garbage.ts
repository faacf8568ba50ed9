import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Decoded frames are memory of the native decoder: only the collector can free them, and it waits until some 60 MB per thread have come
 * together. A collection of a worker's small heap takes about 3 ms, so every fourth frame costs a few percent and saves half of the memory.
 */
const framesPerCollection = 4;

/** A function for a worker thread to call once per frame. The flag only makes `gc` appear in contexts created later. */
export function createCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  let frames = 0;
  return () => {
    frames += 1;
    if (frames % framesPerCollection === 0 && typeof collect === 'function') collect();
  };
}
