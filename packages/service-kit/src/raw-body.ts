import type { IncomingMessage } from 'node:http';
import { problem } from '@drydock/contracts/problem';

/** 100 kB, as the specification of the API has it. */
export const bodyBytesMax = 100 * 1024;

const nothing = Buffer.alloc(0);

/**
 * The whole body. Throws 422 `body_too_large` as soon as more was announced or has come; the caller must then close the connection,
 * for the rest is still on its way. Rejects with the stream's error when the client goes away.
 */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  const { 'content-length': announced, 'transfer-encoding': transferEncoding } = request.headers;
  if (transferEncoding === undefined && (announced === undefined || announced === '0')) return Promise.resolve(nothing);
  if (announced !== undefined && Number(announced) > bodyBytesMax) return Promise.reject(problem('body_too_large'));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > bodyBytesMax) {
        request.pause();
        request.removeAllListeners('data');
        reject(problem('body_too_large'));
        return;
      }
      chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size)));
    request.on('error', reject);
    request.on('close', () => reject(problem('invalid_request', { internal: 'the client went away' })));
  });
}
