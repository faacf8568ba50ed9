import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';

/**
 * Frees the memory of a Buffer that is no longer used. Its length is 0 afterwards. Buffer memory is outside of the
 * JavaScript heap, and the garbage collector lets about 60 MB of it accumulate in each thread. Running the garbage
 * collector more often would cost more time than decoding. A small Buffer, and a Buffer that shares its memory, are
 * left as they are.
 */
export function releaseMemory(buffer: Buffer): void {
  const memory = buffer.buffer;
  if (memory instanceof ArrayBuffer && memory.byteLength === buffer.byteLength && buffer.byteLength > smallBytes)
    detach(memory);
}

/** A call of `detach` costs more than it gains for a smaller Buffer. */
const smallBytes = 65_536;

/**
 * Frees memory. V8's internal function is preferred, because it also frees memory of native modules. Node 20 has no
 * `ArrayBuffer.prototype.transfer`.
 */
const detach = findDetach() ?? moveAway();

function findDetach(): ((memory: ArrayBuffer) => void) | null {
  try {
    setFlagsFromString('--allow-natives-syntax');
    const found: unknown = runInThisContext('(memory) => { %ArrayBufferDetach(memory); }');
    return typeof found === 'function' ? (memory) => void found(memory) : null;
  } catch {
    return null;
  }
}

/**
 * The fallback if V8's function is missing. Moving memory into a closed port frees it. Memory of native modules cannot
 * be moved and waits for the garbage collector.
 */
function moveAway(): (memory: ArrayBuffer) => void {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  port1.close();
  return (memory) => port1.postMessage(null, [memory]);
}
