import type { IncomingMessage } from 'node:http';
import { problem } from '@drydock/contracts/platform/problem';

/** 100 KiB, as the specification of the API has it. */
export const bodyBytesMax = 100 * 1024;

const nothing = Buffer.alloc(0);

/**
 * The whole body. Throws 422 `body_too_large` as soon as the announced length or the received bytes exceed the limit.
 * The caller must then close the connection, because the rest is still on its way. Rejects with the stream's error if
 * the client goes away.
 */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  const { 'content-length': announced, 'transfer-encoding': transferEncoding } = request.headers;
  if (transferEncoding === undefined && (announced === undefined || announced === '0')) return Promise.resolve(nothing);
  if (announced !== undefined && Number(announced) > bodyBytesMax) return Promise.reject(problem('body_too_large'));
  return new Promise((resolve, reject) => {
    // One growing buffer holds the body, because a list of pieces could grow large: a client may send a hundred
    // thousand pieces of one byte, and each would be an object of a hundred bytes.
    let whole: Buffer = nothing;
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      if (size + chunk.length > bodyBytesMax) {
        request.pause();
        request.removeAllListeners('data');
        reject(problem('body_too_large'));
        return;
      }
      if (size === 0) whole = chunk;
      else {
        if (size + chunk.length > whole.length) whole = grown(whole, size, size + chunk.length);
        chunk.copy(whole, size);
      }
      size += chunk.length;
    });
    request.on('end', () => resolve(whole.subarray(0, size)));
    request.on('error', reject);
    request.on('close', () => reject(problem('invalid_request', { internal: 'the client went away' })));
  });
}

function grown(bytes: Buffer, used: number, needed: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(bodyBytesMax, Math.max(needed, used * 2, 1_024)));
  bytes.copy(larger, 0, 0, used);
  return larger;
}
