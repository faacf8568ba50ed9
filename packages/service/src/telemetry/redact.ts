import { withSecretFiles } from '@drydock/process';

export const struckOut = '[redacted]';

/** Names of variables whose value is a secret, or contains secrets (`name=secret,name=secret`, JSON). */
const secretVariable = /SECRET|TOKEN|PASSWORD|(?:^|_)KEYS?$/;
/**
 * Matches a part of a value that is long enough for a secret. A part without a digit is a word or a name, and is not
 * treated as a secret.
 */
const secretPart = /[A-Za-z0-9+/_-]{16,}/g;
const shortestPassword = 8;

/**
 * The forms that are always secrets: API keys, JSON web tokens, credentials of headers and URLs, verifiers and
 * passwords of Postgres, signatures of S3, private keys. The first group of each pattern is kept, so that the text
 * stays readable.
 */
const secretForms: readonly RegExp[] = [
  /()dd_(?:live|test)_[0-9a-z]{12}_[0-9a-z]{49}/gi,
  /()eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*/g,
  /()SCRAM-SHA-256\$[\w+/=:$]+/gi,
  /()\bmd5[0-9a-f]{32}\b/gi,
  /(\b(?:Bearer|Basic) +)[\w+/=.~-]{8,}/gi,
  /(:\/\/[^\s/:@'"\\]*:)[^\s/@'"\\]+(?=@)/g,
  // The next pattern matches a password in quotes, as in SQL and JSON, even if the quotes are escaped twice. The
  // pattern after it matches a password without quotes, as in connection strings.
  /(\b(?:password|passwd|pwd)(?:\\*["'])?\s*(?:[=:]\s*|\s(?=\\*["']))(?:\\*["'])+)(?:[^"'\\]|''(?=[^\s'",);]))+/gi,
  /(\b(?:password|passwd|pwd)\s*=\s*)[^\s"'&\\,;}]+/gi,
  /(X-Amz-(?:Signature|Security-Token)=)[^&\s"\\]+/gi,
  /()-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
];

/** A quick test before the slow patterns. Every text with a secret form matches it, and most texts do not. */
const sign = /dd_(?:live|test)_|eyJ|scram-|md5[0-9a-f]|bearer |basic |:\/\/[^/\s]*@|passw|pwd|x-amz-s|private key/i;

/**
 * The secrets in the values of an environment. Secrets in files are found only if the environment comes from
 * `withSecretFiles`.
 */
export function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  const found = new Set<string>();
  for (const [name, value = ''] of Object.entries(environment)) {
    if (secretVariable.test(name))
      for (const [part] of value.matchAll(secretPart)) if (/\d/.test(part)) found.add(part);
    const password = URL.canParse(value) ? new URL(value).password : '';
    if (password.length >= shortestPassword) found.add(password).add(decodeURIComponent(password));
  }
  return [...found];
}

const escapeForPattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Makes a function that redacts text: the given secrets, and everything in the form of a secret. JSON stays JSON. */
export function createRedaction(secrets: readonly string[]): (text: string) => string {
  const known = secrets.length === 0 ? undefined : new RegExp(secrets.map(escapeForPattern).join('|'), 'g');
  return (text) => {
    let shown = known === undefined || text.search(known) < 0 ? text : text.replace(known, struckOut);
    if (sign.test(shown)) for (const form of secretForms) shown = shown.replace(form, `$1${struckOut}`);
    return shown;
  };
}

/** Redacts text with this process's own secrets, for logs and telemetry. */
export const redact = createRedaction(secretsOf(withSecretFiles(process.env)));
