import { hkdfSync } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { authorityOf, isEndpointAllowed } from '@drydock/service/outbound/public-address';
import { deriveKeys, secretsIn } from '@drydock/service/process/secrets';
import type { ServerConfig, WorkerConfig } from '../config';
import type { OpenOptions } from '../providers/offsite-storage';
import { s3OffsiteStorage } from '../providers/offsite-storage.s3';
import type { Destination, OffsiteDrivers, OffsiteReaders } from './offsite.types';
import { openCredentials, sealCredentials } from './offsite-credentials';

type Settings = Pick<ServerConfig, 'SERVICE_SECRET' | 'DRYDOCK_OFFSITE_ALLOW'>;

const allowedIn = ({ DRYDOCK_OFFSITE_ALLOW: list = '' }: Settings): ReadonlySet<string> =>
  new Set(list.split(',').filter((entry) => entry !== ''));

export const credentialKeysOf = ({ SERVICE_SECRET }: Pick<Settings, 'SERVICE_SECRET'>) =>
  deriveKeys(SERVICE_SECRET, 'offsite-credentials');

/** Opens a destination with the credentials that are sealed in it. */
function openerOf(settings: Settings) {
  const open = s3OffsiteStorage({ allowed: allowedIn(settings) });
  const keys = credentialKeysOf(settings);
  return (destination: Destination, options?: OpenOptions) => {
    const { sealedCredentials } = destination;
    if (sealedCredentials === null) throw new Error('a removed destination was to be opened');
    return open(destination, openCredentials(keys, destination, sealedCredentials), options);
  };
}

/** The part for requests: seals credentials, and reads a storage without changing it. */
export function composeOffsiteReaders(settings: Settings): OffsiteReaders {
  const allowed = allowedIn(settings);
  const [key] = credentialKeysOf(settings);
  return {
    // The sandbox may use emulators only, which are the endpoints that are allowed by name.
    allows: (endpoint, mode) =>
      mode === 'live' ? isEndpointAllowed(endpoint, allowed) : allowed.has(authorityOf(endpoint)),
    seal: (place, credentials) => sealCredentials(key, place, credentials),
    open: openerOf(settings),
  };
}

/** The part for workflow steps. */
export function composeOffsiteDrivers(
  settings: Settings & Pick<WorkerConfig, 'SPOOL_DIR' | 'ARCHIVE_KEY'>,
): OffsiteDrivers {
  return {
    open: openerOf(settings),
    encryptionKeyId: Buffer.from(
      hkdfSync('sha256', Buffer.from(secretsIn(settings.ARCHIVE_KEY)[0], 'hex'), '', 'drydock archive key id', 8),
    ).toString('hex'),
    spoolDir: settings.SPOOL_DIR ?? path.join(tmpdir(), 'drydock-spool'),
  };
}
