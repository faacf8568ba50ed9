import { MessageChannel } from 'node:worker_threads';

/** A closed port: what is moved into it is freed. */
const { port1: sink, port2: peer } = new MessageChannel();
peer.close();
sink.close();

/**
 * Frees the memory of a Buffer that nobody reads any more; its length is 0 afterwards. Buffers live outside the JavaScript heap, so the
 * collector lets tens of megabytes of them pile up in each thread before it looks. A Buffer that shares its memory is left alone.
 */
export function releaseMemory(buffer: Buffer): void {
  const memory = buffer.buffer;
  if (memory instanceof ArrayBuffer && memory.byteLength === buffer.byteLength && buffer.byteLength > 65_536)
    sink.postMessage(null, [memory]);
}
