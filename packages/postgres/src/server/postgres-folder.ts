import path from 'node:path';
import { type ServerHome, settleHome } from '@drydock/process/server-folder';

/**
 * Where one embedded Postgres keeps its files. `<home>/<major>` is the data directory, so that several majors can exist
 * side by side.
 */
export interface PostgresFolder extends ServerHome {
  dataDir: string;
  passwordFile: string;
}

/** Decides where the data of `folder` is. It is elsewhere when the server's account cannot enter the folder. */
export function settlePostgresFolder(folder: string, major: number): PostgresFolder {
  const { home, isElsewhere } = settleHome(folder);
  return { home, dataDir: path.join(home, String(major)), passwordFile: path.join(home, 'password'), isElsewhere };
}
