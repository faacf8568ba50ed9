import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createSiteHostClient } from '@drydock/agent/clients';
import { PortAllocator } from '@drydock/agent/host';
import { until } from '@drydock/testing/wait';
import type { SiteHostConfig } from '../src/config';
import { type TestClient, withPlaces } from './host';

/**
 * Starts the compiled site agent as a process. `faults` is the folder in which a file such as `POINT@kill` arms a fault
 * point.
 */
export async function spawnHost(
  config: SiteHostConfig,
  faults: string,
): Promise<{ child: ChildProcess; client: TestClient; controlUrl: string }> {
  const port = await new PortAllocator('127.0.0.1').allocate();
  const settings = Object.entries(config).filter(([, value]) => value !== undefined);
  const env = {
    ...process.env,
    ...Object.fromEntries(settings.map(([name, value]) => [name, String(value)])),
    PORT: String(port),
    DRYDOCK_FAULTS: faults,
  };
  const child = spawn(process.execPath, [path.resolve(__dirname, '../dist/server.js')], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const controlUrl = `http://127.0.0.1:${port}`;
  await until(async () => (await fetch(`${controlUrl}/readyz`)).ok, { what: 'the host', timeoutMs: 30_000 });
  return {
    child,
    controlUrl,
    client: withPlaces(createSiteHostClient({ url: controlUrl, secret: config.SITE_HOST_SECRET }), config),
  };
}
