import { createHash, type Hash } from 'node:crypto';
import { isSame } from '../protocol/tokens';
import type { Caller } from './authenticate';
import { refuse } from './s3-errors';
import { scopeText, sha256Hex, signText } from './signature-v4';

/** Content-Encoding aws-chunked: `<hex size>[;chunk-signature=…]\r\n<data>\r\n … 0\r\n<trailers>\r\n`. */
export interface ChunkedBody {
  caller: Caller;
  /** Filled when the trailers come. Names are in lower case. */
  trailers: Record<string, string>;
}

const lineBytesMax = 8 * 1024;
const emptyHash = sha256Hex('');

/** The data in the chunks. When the chunks are signed, each signature is checked. @throws S3Refusal */
export async function* readChunks(
  source: AsyncIterable<Buffer>,
  { caller, trailers }: ChunkedBody,
): AsyncGenerator<Buffer> {
  const signatures = caller.payloadHash.startsWith('STREAMING-AWS4-HMAC-SHA256-PAYLOAD') ? chainOf(caller) : null;
  const input = openInput(source);
  for (;;) {
    const [size = '', ...extensions] = (await input.line()).split(';');
    if (!/^[0-9a-f]{1,8}$/i.test(size)) refuse('IncompleteBody', 'The chunk has no size.');
    let left = Number.parseInt(size, 16);
    const hash = createHash('sha256');
    const isLast = left === 0;
    while (left > 0) {
      const bytes = await input.take(left);
      left -= bytes.length;
      if (signatures !== null) hash.update(bytes);
      yield bytes;
    }
    signatures?.check(hash, extensions.join(';'));
    if (isLast) break;
    if ((await input.line()) !== '') refuse('IncompleteBody', 'The chunk is longer than its size.');
  }
  await readTrailers(input, trailers);
  if (signatures !== null && caller.payloadHash.endsWith('-TRAILER')) signatures.checkTrailers(trailers);
}

async function readTrailers(input: Input, trailers: Record<string, string>): Promise<void> {
  for (let line = await input.line(); line !== ''; line = await input.line()) {
    const cut = line.indexOf(':');
    if (cut > 0) trailers[line.slice(0, cut).trim().toLowerCase()] = line.slice(cut + 1).trim();
  }
}

/** The signature of each chunk includes the signature of the chunk before it. */
function chainOf({ scope, signature }: Caller): {
  check(hash: Hash, extension: string): void;
  checkTrailers(trailers: Record<string, string>): void;
} {
  let previous = signature;
  const compare = (expected: string, given: string | undefined): void => {
    if (given === undefined || !isSame(expected, given))
      refuse('SignatureDoesNotMatch', 'A chunk signature does not match.');
    previous = expected;
  };
  return {
    check: (hash, extension) => {
      const text = [
        'AWS4-HMAC-SHA256-PAYLOAD',
        scope.at,
        scopeText(scope),
        previous,
        emptyHash,
        hash.digest('hex'),
      ].join('\n');
      compare(signText(scope, text), /^chunk-signature=([0-9a-f]{64})$/.exec(extension)?.[1]);
    },
    checkTrailers: (trailers) => {
      const { 'x-amz-trailer-signature': given, ...signed } = trailers;
      const content = Object.entries(signed)
        .map(([name, value]) => `${name}:${value}\n`)
        .join('');
      const text = ['AWS4-HMAC-SHA256-TRAILER', scope.at, scopeText(scope), previous, sha256Hex(content)].join('\n');
      compare(signText(scope, text), given);
    },
  };
}

interface Input {
  /** The text up to CRLF, without CRLF. '' at the end of the body. */
  line(): Promise<string>;
  /** Takes at least one byte and at most `bytes`. @throws S3Refusal at the end of the body */
  take(bytes: number): Promise<Buffer>;
}

function openInput(source: AsyncIterable<Buffer>): Input {
  const iterator = source[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const { value, done } = await iterator.next();
    if (done === true) return false;
    held = held.length === 0 ? value : Buffer.concat([held, value]);
    return true;
  };
  return {
    line: async () => {
      for (;;) {
        const end = held.indexOf('\r\n');
        if (end >= 0) {
          const line = held.subarray(0, end).toString('latin1');
          held = held.subarray(end + 2);
          return line;
        }
        if (held.length > lineBytesMax) refuse('IncompleteBody', 'A line of the chunked body is too long.');
        if (!(await more())) {
          if (held.length > 0) refuse('IncompleteBody', 'The chunked body ends within a line.');
          return '';
        }
      }
    },
    take: async (bytes) => {
      while (held.length === 0)
        if (!(await more())) refuse('IncompleteBody', 'You did not provide the number of bytes specified.');
      const taken = held.subarray(0, bytes);
      held = held.subarray(taken.length);
      return taken;
    },
  };
}
