import { hkdfSync, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { writeFileAtomically } from './write-file-atomically';

/** A secret as hex for each use, all from one master key. The labels are those of infra/docker/derive-secrets.mjs. */
export type DeriveSecret = (label: string) => string;

/** The master key of this data folder, made at the first start (0600). It stays with the supervisor: no process is given it. */
export function openMasterKey(dataDir: string): DeriveSecret {
  const file = path.join(dataDir, 'master.key');
  if (!fs.existsSync(file)) writeFileAtomically(file, `${randomBytes(32).toString('hex')}\n`);
  const master = Buffer.from(fs.readFileSync(file, 'utf8').trim(), 'hex');
  if (master.length !== 32) throw new Error(`${file} is not a key of 32 bytes in hex`);
  return (label) => Buffer.from(hkdfSync('sha256', master, '', label, 32)).toString('hex');
}
