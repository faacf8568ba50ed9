import { pipeline, Readable, Transform } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';

/** Twice a page of a listing: a thousand of the longest keys, with their fields. */
const listingBytesMax = 4 * 1024 * 1024;
/**
 * Limit for errors and for answers other than listings. They are parsed on the process's only thread, so a large one
 * would delay everybody.
 */
const answerBytesMax = 64 * 1024;

/** The most document types in an answer. An honest one has at most one, on an error page. */
const documentTypesMax = 1;
const documentType = '<!doctype';

/**
 * Limits answers. The client reads everything but an object's content whole into memory, errors too, so an answer
 * larger than any honest one is cut off. So is an answer with many document types: the client's parser copies the whole
 * answer for each, which blocked the process for half a second with 4 MB.
 */
export function capAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const answered = await next(args);
        const { response } = answered;
        if (!hasBody(response)) return answered;
        const isRefusal = response.statusCode >= 300;
        // The content of an object has a limit of its own, where it is read.
        if (commandName === 'GetObjectCommand' && !isRefusal) return answered;
        response.body = capped(
          response.body,
          commandName === 'ListObjectsV2Command' && !isRefusal ? listingBytesMax : answerBytesMax,
        );
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

function capped(body: Readable, bytesMax: number): Readable {
  let bytes = 0;
  let documentTypes = 0;
  let lastLetters = '';
  const counter = new Transform({
    transform: (piece: Buffer, _encoding, done) => {
      bytes += piece.length;
      const seen = (lastLetters + piece.toString('latin1')).toLowerCase();
      documentTypes += seen.split(documentType).length - 1;
      lastLetters = seen.slice(1 - documentType.length);
      if (bytes > bytesMax) done(new Error(`an answer larger than ${bytesMax} bytes`));
      else if (documentTypes > documentTypesMax) done(new Error('an answer of several document types'));
      else done(null, piece);
    },
  });
  // Destroys the body, and with it the connection, when the counter fails; whoever reads the counter gets the error.
  pipeline(body, counter, () => undefined);
  return counter;
}
