// Prints an env file with every secret of docker-compose.yml, derived from one master key.
//   node infra/docker/derive-secrets.mjs > infra/docker/.env       (a fresh master key is made and printed in it once)
//   DRYDOCK_MASTER_KEY=<64 hex digits> node infra/docker/derive-secrets.mjs
import { hkdfSync, randomBytes } from 'node:crypto';

const master = Buffer.from(process.env.DRYDOCK_MASTER_KEY ?? randomBytes(32).toString('hex'), 'hex');
if (master.length !== 32) {
  console.error('DRYDOCK_MASTER_KEY must be 64 hexadecimal digits (32 bytes). Leave it out to have one made.');
  process.exit(1);
}
const derive = (label) => Buffer.from(hkdfSync('sha256', master, '', label, 32)).toString('hex');
const lines = [
  '# Keep this file secret and backed up: without the master key no backup can be read.',
  `DRYDOCK_MASTER_KEY=${master.toString('hex')}`,
  ...['keys', 'hosting', 'compute', 'agency', 'databases'].flatMap((service) => {
    const name = service.toUpperCase();
    return [
      `${name}_SERVICE_SECRET=${derive(`service:${service}`)}`,
      `${name}_TOKEN_SECRET=${derive(`internal-token:${service}`)}`,
      `${name}_AUDIT_SECRET=${derive(`audit:${service}`)}`,
      `${name}_DB_PASSWORD=${derive(`postgres:${service}`)}`,
    ];
  }),
  `ARCHIVE_KEY=${derive('archive')}`,
  `DATABASES_ARCHIVE_KEY=${derive('archive:databases')}`,
  `DATABASE_HOST_SECRET=${derive('database-host')}`,
  `DATABASE_HOST_READER_SECRET=${derive('database-host:reader')}`,
  `SITE_HOST_SECRET=${derive('site-host')}`,
  `SITE_HOST_READER_SECRET=${derive('site-host:reader')}`,
  `HETZNER_SANDBOX_TOKEN=${derive('hetzner-stand-in:sandbox')}`,
  `HETZNER_SANDBOX_READER_TOKEN=${derive('hetzner-stand-in:sandbox:reader')}`,
  `HETZNER_STAND_IN_ADMIN_TOKEN=${derive('hetzner-stand-in:admin')}`,
  `PROXMOX_SANDBOX_SECRET=${derive('proxmox-stand-in:sandbox')}`,
  `PROXMOX_SANDBOX_READER_SECRET=${derive('proxmox-stand-in:sandbox:reader')}`,
  `PROXMOX_STAND_IN_ADMIN_TOKEN=${derive('proxmox-stand-in:admin')}`,
  `POSTGRES_PASSWORD=${derive('postgres:admin')}`,
  `SITES_POSTGRES_PASSWORD=${derive('postgres:sites')}`,
  `REDIS_PASSWORD=${derive('redis')}`,
];
console.log(lines.join('\n'));
