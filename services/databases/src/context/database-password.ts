import { hkdfSync } from 'node:crypto';
import { nameOfSecret, secretNamed, secretsIn } from '@drydock/service/process';

/**
 * Derives passwords from the service's secret and the database's id. Passwords are stored nowhere, so a stolen record
 * reveals none. The worker derives the password in order to set it. The API derives it for the answer to the call that
 * creates the database, and again when the call is repeated.
 */
export interface DatabasePasswords {
  /** The name of the secret from which new passwords are derived. */
  madeWith: string;
  /** Whether the secret is being rotated, so that the worker and the API may have different current secrets. */
  areRotated: boolean;
  /**
   * A password of 32 base64url characters. It is derived from the secret that `madeWith` names, or from the current
   * secret if `madeWith` is missing. Throws if the named secret is no longer accepted.
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
