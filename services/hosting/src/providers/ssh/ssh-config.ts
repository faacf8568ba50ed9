import { z } from 'zod';

const account = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]*$/, 'must be an account name');

const sshHostSchema = z.strictObject({
  host: z.string().min(1),
  port: z.int().min(1).max(65_535).default(22),
  user: account,
  private_key_file: z.string().startsWith('/'),
  host_key_fingerprint: z.string().regex(/^SHA256:[A-Za-z0-9+/]{43}$/, 'must be as ssh-keygen -l prints it: SHA256:…'),
  sites_dir: z.string().regex(/^\/[^\0\n]*[^\0\n/]$/, 'must be an absolute path'),
  database_admin_url: z.url({
    protocol: /^(?:postgres(?:ql)?|mysql|mariadb)$/,
    error: 'must be a postgresql://, mariadb:// or mysql:// URL',
  }),
  public_url_template: z.string().includes('{site_id}').startsWith('http'),
  /** The port of the web server on the loopback of the host, for the probe. */
  web_port: z.int().min(1).max(65_535).default(80),
});

export type SshHostConfig = z.output<typeof sshHostSchema>;

/** Reads the JSON of SSH_SITE_HOST or SSH_SANDBOX_SITE_HOST. The error names the wrong fields, never their values. */
export function parseSshHost(text: string): SshHostConfig {
  const parsed = sshHostSchema.safeParse(readJson(text));
  if (parsed.success) return parsed.data;
  throw new Error(
    `an ssh site host: ${parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ')}`,
  );
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('an ssh site host: is no JSON');
  }
}

/** The faults of the JSON as text, or ''. */
export function faultOfSshHost(text: string): string {
  try {
    parseSshHost(text);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
