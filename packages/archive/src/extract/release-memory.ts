import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { MessageChannel } from 'node:worker_threads';

/**
 * Frees the memory of a Buffer that nobody reads any more; its length is 0 afterwards. Buffers live outside the JavaScript heap, so the
 * collector lets some 60 MB of them pile up in each thread before it looks, and calling it often costs more than decoding does. A Buffer that
 * shares its memory with others is left alone.
 */
export function releaseMemory(buffer: Buffer): void {
  const memory = buffer.buffer;
  if (memory instanceof ArrayBuffer && memory.byteLength === buffer.byteLength && buffer.byteLength > smallBytes) detach(memory);
}

/** Not worth a call. */
const smallBytes = 65_536;

/** Node 20 has no `ArrayBuffer.prototype.transfer`; the engine's own function does what it would, also for memory of native modules. */
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

/** Without it: what is moved into a closed port is freed. Memory of native modules cannot be moved and waits for the collector. */
function moveAway(): (memory: ArrayBuffer) => void {
  const { port1, port2 } = new MessageChannel();
  port2.close();
  port1.close();
  return (memory) => port1.postMessage(null, [memory]);
}
