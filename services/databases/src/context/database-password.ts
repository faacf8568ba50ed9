import { hkdfSync } from 'node:crypto';
import { nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process';

/**
 * Derives passwords from the service's secret and the database's id. They are stored nowhere: the worker that sets one
 * and the replay of the call that showed it derive it again, and a stolen record reveals none.
 */
export interface DatabasePasswords {
  /** The name of the secret that new passwords come from. */
  madeWith: string;
  /** Whether the secret is being rotated. A worker may then have another current secret than the API. */
  areRotated: boolean;
  /**
   * 32 characters of base64url, derived from the secret of that name, by default the current one. Throws if the secret
   * is no longer accepted.
   */
  of(databaseId: string, madeWith?: string): string;
}

/** @param secrets as SERVICE_SECRET has them */
export function databasePasswords(secrets: string): DatabasePasswords {
  const accepted = secretsIn(secrets);
  return {
    madeWith: nameOfSecret(accepted[0]),
    areRotated: accepted.length > 1,
    of: (databaseId, madeWith) => {
      const secret = Buffer.from(secretNamed(secrets, madeWith), 'hex');
      return Buffer.from(hkdfSync('sha256', secret, '', `database-password:${databaseId}`, 24)).toString('base64url');
    },
  };
}
