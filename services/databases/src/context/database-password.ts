import { hkdfSync } from 'node:crypto';
import { nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process';

/**
 * Derives passwords from the service's secret and the database's id. Passwords are stored nowhere, so a stolen record
 * reveals none. The worker derives the password to set it, and a replay of the creating call derives it again.
 */
export interface DatabasePasswords {
  /** The name of the secret from which new passwords are derived. */
  madeWith: string;
  /**
   * Whether the secret is being rotated. During a rotation the current secrets of the worker and the API may differ.
   */
  areRotated: boolean;
  /**
   * A password of 32 base64url characters, derived from the secret that `madeWith` names, or from the current secret.
   * Throws if the named secret is no longer accepted.
   */
  of(databaseId: string, madeWith?: string): string;
}

/** @param secrets in the form of SERVICE_SECRET */
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
