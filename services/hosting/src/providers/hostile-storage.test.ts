import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { uuidv7 } from 'uuidv7';
import type { OffsiteStorage } from './offsite-storage';
import { s3OffsiteStorage } from './offsite-storage.s3';

const deadlines = { connectMs: 2_000, idleMs: 10_000, objectMs: 20_000 };
const folder = `${uuidv7()}/${uuidv7()}`;
const key = `${folder}/1`;

/** What a customer's endpoint may turn out to be. Resolves with how the work ended and how many bytes were taken off its hands. */
async function facing(
  listener: http.RequestListener,
  work: (storage: OffsiteStorage) => Promise<unknown>,
): Promise<{ error: unknown; bytesTaken: number }> {
  const server = http.createServer(listener);
  let bytesTaken = 0;
  server.on('connection', (socket) => socket.on('close', () => (bytesTaken += socket.bytesWritten)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = s3OffsiteStorage({ allowed: new Set([host]) });
  const place = { endpoint: `http://${host}`, region: 'us-east-1', bucket: 'copies', prefix: '' };
  const storage = open(place, { accessKeyId: 'KEY', secretAccessKey: 'secret' }, { deadlines });
  const error = await work(storage).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  storage.close();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  return { error, bytesTaken };
}

const always =
  (status: number, body: string, type = 'text/html'): http.RequestListener =>
  (request, response) => {
    request.resume().on('end', () => response.writeHead(status, { 'content-type': type }).end(body));
  };
const s3Error = (status: number, code: string): http.RequestListener =>
  always(status, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>no</Message></Error>`, 'application/xml');

const read = (storage: OffsiteStorage) => storage.source(key).read('manifest');
const write = (storage: OffsiteStorage) => storage.sink(key).write('manifest', Buffer.from('x'));
const remove = (storage: OffsiteStorage) => storage.removeAll(folder);
const probe = (storage: OffsiteStorage) => storage.probe(uuidv7());

describe('an endpoint that answers without end', () => {
  const endless =
    (status: number): http.RequestListener =>
    (request, response) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'application/xml' });
      const piece = Buffer.alloc(256 * 1024, 'a');
      const pour = (): void => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', pour);
      pour();
    };

  it.each([
    ['an error to a read', 500, read],
    ['a refusal to a read', 403, read],
    ['a write', 200, write],
    ['a listing', 200, remove],
  ])('in place of %s does not fill our memory', async (_what, status, work) => {
    const { error, bytesTaken } = await facing(endless(status), work);
    expect(String(error)).toContain('larger than');
    expect(bytesTaken).toBeLessThan(64e6);
  });
});
