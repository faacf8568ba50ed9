import { pipeline, Readable, Transform } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';

/** Twice a page of a listing: a thousand keys of the longest kind, with what is said of each. */
const answerBytesMax = 4 * 1024 * 1024;

/**
 * Everything but the content of an object is read into memory by the client, whole, errors too: an answer that is larger than any honest one
 * is cut off instead.
 */
export function capAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const answered = await next(args);
        const { response } = answered;
        // The content of an object has a limit of its own, where it is read.
        if (hasBody(response) && !(commandName === 'GetObjectCommand' && response.statusCode < 300)) response.body = capped(response.body);
        return answered;
      },
    { step: 'deserialize', priority: 'low', name: 'capAnswers' },
  );
}

const hasBody = (response: unknown): response is { statusCode: number; body: Readable } =>
  typeof response === 'object' &&
  response !== null &&
  'statusCode' in response &&
  typeof response.statusCode === 'number' &&
  'body' in response &&
  response.body instanceof Readable;

function capped(body: Readable): Readable {
  let bytes = 0;
  const counter = new Transform({
    transform: (piece: Buffer, _encoding, done) => {
      bytes += piece.length;
      if (bytes > answerBytesMax) done(new Error(`an answer larger than ${answerBytesMax} bytes`));
      else done(null, piece);
    },
  });
  // Destroys the body, and with it the connection, when the counter fails; whoever reads the counter gets the error.
  pipeline(body, counter, () => undefined);
  return counter;
}
