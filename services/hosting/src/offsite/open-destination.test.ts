import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createSiteHostClient } from '@drydock/agent/clients';
import { newSecret } from '@drydock/testing/secret';
import { StepFailure } from '@drydock/workflow/definition';
import { uuidv7 } from 'uuidv7';
import { s3OffsiteStorage } from '../providers/offsite-storage.s3';
import { offsiteLimits, onStorage } from './open-destination';

const { attemptsMax } = offsiteLimits;

/** A port of this machine that refuses connections. */
async function closedPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.close();
  await once(server, 'close');
  return host;
}

/** Resolves with the error of an attempt at a step, after this many attempts have failed. */
const errorOf = (failures: number, work: () => Promise<unknown>): Promise<unknown> =>
  onStorage({ failures, signal: new AbortController().signal }, attemptsMax, work).then(
    () => null,
    (error: unknown) => error,
  );

it('a storage that is not reached is tried again, and is named only by the last attempt', async () => {
  const host = await closedPort();
  const storage = s3OffsiteStorage({ allowed: new Set([host]) })(
    { endpoint: `http://${host}`, region: 'us-east-1', bucket: 'copies', prefix: '' },
    { accessKeyId: 'KEY', secretAccessKey: 'secret' },
  );
  const read = () => storage.source(`${uuidv7()}/${uuidv7()}/1`).read('manifest');
  const early = await errorOf(attemptsMax - 2, read);
  const last = await errorOf(attemptsMax - 1, read);
  storage.close();
  expect(early).not.toBeInstanceOf(StepFailure);
  expect(String(early)).toContain('ECONNREFUSED');
  expect(last).toMatchObject({
    problem: { code: 'dependency_unavailable', extra: { dependency: 'customer_storage' } },
  });
});

it('a site agent that is not reached is never taken for the customer’s storage', async () => {
  const client = createSiteHostClient({ url: `http://${await closedPort()}`, secret: newSecret() });
  const error = await errorOf(attemptsMax - 1, () => client.readSite(uuidv7()));
  await client.close();
  expect(error).not.toBeInstanceOf(StepFailure);
  expect(error).toMatchObject({ code: 'unreachable' });
});
