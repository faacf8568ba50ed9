import pg from 'pg';
import { setRolePassword } from '../load/transfer-roles';
import { ScramClient } from '../session/scram-client';
import { bySocket } from '../session/session';

/** Wrong password, or a role that may not log in. */
export const isLoginRefused = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code?.startsWith('28') === true;

/**
 * A superuser's URL with one password. While that is rotated the given URL holds two, with a comma between: the server keeps one password of a role, so that it
 * is asked which, and given the first. A comma of a password's own is written %2C. With `socketFolder` the server is asked by the socket there.
 * @throws when none of them opens it
 */
export async function settleSuperuser(adminUrl: string, socketFolder: string | null = null): Promise<string> {
  const urls = new URL(adminUrl).password.split(',').map((password) => Object.assign(new URL(adminUrl), { password }).href);
  const [current = adminUrl] = urls;
  if (urls.length === 1) return current;
  for (const [at, url] of urls.entries()) {
    const admin = new ScramClient({ connectionString: socketFolder === null ? url : bySocket(url, socketFolder) });
    try {
      await admin.connect();
      if (at === 0) return current;
      const { username, password } = new URL(current);
      await setRolePassword(admin, { verb: 'alter', role: decodeURIComponent(username), password: decodeURIComponent(password) });
      return current;
    } catch (error) {
      if (!isLoginRefused(error) || at === urls.length - 1) throw error;
    } finally {
      await admin.end();
    }
  }
  return current;
}
