import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { createSiteHostClient } from '@drydock/agent/clients';
import { readSiteOnDisk } from '@drydock/site-agent/sites/site-on-disk';
import { z } from 'zod';
import { inRepo } from '../dev-config';
import { databaseUrl, emulatorAdmin, s3KeysOf } from '../place';
import type { Stack } from '../stack';
import type { Bootstrapped, SeedContext, SitePlace } from './seed';

const run = promisify(execFile);
const bootstrapSchema = z.object({ org_id: z.string(), key_id: z.string(), token: z.string() });

/** Everything that seeds use besides the public API: commands of services, the site agent, and the emulators. */
export type DemoTools = Pick<
  SeedContext,
  'describeSite' | 'bootstrap' | 'customerStorage' | 'vendor' | 'hostingCommand' | 'hetzner'
>;

export function demoToolsOf({ place, programOf }: Stack): DemoTools {
  async function bootstrap(name: string): Promise<Bootstrapped> {
    const { stdout } = await run(
      process.execPath,
      [inRepo('services/keys/dist/bootstrap.js'), '--json', '--new-key', '--name', name],
      {
        env: { ...programOf('keys').environment, SERVICE_NAME: 'keys-bootstrap', LOG_LEVEL: 'silent' },
      },
    );
    return bootstrapSchema.parse(JSON.parse(stdout));
  }

  /** Asks the site agent for the site's address, and reads its folder and database from the agent's own folder. */
  async function describeSite(siteId: string): Promise<SitePlace> {
    const client = createSiteHostClient({
      url: `http://${place.addressOf('site-host')}`,
      secret: place.current('site-host'),
    });
    try {
      const { url } = await client.readSite(siteId);
      const { filesDir, databaseUrl: siteDatabase } = await readSiteOnDisk(
        place.folderOf('sites'),
        siteId,
        '127.0.0.1',
      );
      return { url, files_dir: filesDir, database_url: siteDatabase };
    } finally {
      await client.close();
    }
  }

  async function hostingCommand(verb: 'hold' | 'purge', deletedSiteId: string): Promise<void> {
    const command = [inRepo('services/hosting/dist/deleted-sites/command.js'), verb, deletedSiteId];
    const env = { DATABASE_URL: databaseUrl(place, 'hosting'), LOG_LEVEL: 'silent' };
    for (let attempt = 1; ; attempt += 1) {
      try {
        await run(process.execPath, command, { env });
        return;
      } catch (error) {
        // On a busy machine Prisma may get no connection in time. The transaction has then not begun, so the command
        // can be repeated.
        if (attempt === commandTriesMax || !String(error).includes('Unable to start a transaction')) throw error;
      }
    }
  }

  const projectToken = (project: 'live' | 'sandbox'): string => place.derive(`hetzner-stand-in:${project}`);
  return {
    bootstrap,
    describeSite,
    hostingCommand,
    customerStorage: { live: s3KeysOf('customer', place), sandbox: s3KeysOf('sandboxCustomer', place) },
    vendor: emulatorAdmin('vendor-stand-in', place),
    hetzner: {
      ...emulatorAdmin('hetzner-stand-in', place),
      projectTokens: { live: projectToken('live'), sandbox: projectToken('sandbox') },
    },
  };
}

const commandTriesMax = 10;
