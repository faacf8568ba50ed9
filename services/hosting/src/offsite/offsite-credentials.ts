import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { CurrentFirst } from '@drydock/service/process';
import type { Log } from '@drydock/service/telemetry';
import { z } from 'zod';
import type { HostingDatabase } from '../context/database.store';
import type { OffsiteCredentials, SealedPlace } from '../providers/offsite-storage';
import { listSealed, replaceCredentials } from './offsite.store';

const version = Buffer.from([1]);
const ivBytes = 12;
const tagBytes = 16;

const credentialsSchema = z.strictObject({ accessKeyId: z.string(), secretAccessKey: z.string() });

const boundTo = ({ siteId, endpoint, bucket, prefix }: SealedPlace): Buffer =>
  Buffer.from(JSON.stringify([siteId, endpoint, bucket, prefix]));

/**
 * Encrypts the credentials with AES-256-GCM and binds them to `place`. The result holds the version, a 12-byte IV, the
 * ciphertext and a 16-byte tag.
 */
export function sealCredentials(key: Buffer, place: SealedPlace, credentials: OffsiteCredentials): Buffer {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(boundTo(place));
  const sealed = cipher.update(JSON.stringify(credentialsSchema.parse(credentials)));
  return Buffer.concat([version, iv, sealed, cipher.final(), cipher.getAuthTag()]);
}

/** Throws if none of the keys has sealed the credentials for this place, or if they were altered. */
export function openCredentials(keys: CurrentFirst<Buffer>, place: SealedPlace, sealed: Buffer): OffsiteCredentials {
  const [key, ...others] = keys;
  try {
    return openWith(key, place, sealed);
  } catch (error) {
    const [next, ...rest] = others;
    if (next === undefined) throw error;
    return openCredentials([next, ...rest], place, sealed);
  }
}

/** Whether `key` has sealed the credentials for `place`. */
export function isSealedWith(key: Buffer, place: SealedPlace, sealed: Buffer): boolean {
  try {
    return openWith(key, place, sealed).accessKeyId !== '';
  } catch {
    return false;
  }
}

function openWith(key: Buffer, place: SealedPlace, sealed: Buffer): OffsiteCredentials {
  if (sealed.length < 1 + ivBytes + tagBytes || sealed[0] !== version[0])
    throw new Error('sealed credentials of an unknown form');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + ivBytes), {
    authTagLength: tagBytes,
  }).setAAD(boundTo(place));
  decipher.setAuthTag(sealed.subarray(-tagBytes));
  const opened = Buffer.concat([decipher.update(sealed.subarray(1 + ivBytes, -tagBytes)), decipher.final()]);
  return credentialsSchema.parse(JSON.parse(opened.toString('utf8')));
}

const rowsMax = 500;

/**
 * Finds the credentials that a former key has sealed, and seals them with the current key, so that the former key can
 * be removed. Runs once at the start of a process, and only while a former key is configured. Two processes may do this
 * at once, because a row is replaced only if it has not changed since it was read.
 */
export function createResealing(database: HostingDatabase, keys: CurrentFirst<Buffer>, log: Log) {
  let running: Promise<void> = Promise.resolve();
  let stopping = false;
  const reseal = async (): Promise<void> => {
    const [current] = keys;
    let resealed = 0;
    for (let after = '00000000-0000-0000-0000-000000000000'; !stopping; ) {
      const rows = await listSealed(database.pool, after, rowsMax);
      for (const { id, sealed, ...place } of rows) {
        if (isSealedWith(current, place, sealed)) continue;
        const renewed = sealCredentials(current, place, openCredentials(keys, place, sealed));
        resealed += await replaceCredentials(database.pool, id, { sealed, renewed });
      }
      const last = rows.at(-1);
      if (last === undefined) {
        log.info({ resealed }, 'every credential of a storage is sealed with the current secret');
        return;
      }
      after = last.id;
    }
  };
  return {
    start: () => {
      if (keys.length === 1) return;
      running = reseal().catch((error: unknown) =>
        log.error({ err: error }, 'credentials could not be sealed anew; tried again at the next start'),
      );
    },
    stop: async () => {
      stopping = true;
      await running;
    },
  };
}
