import path from 'node:path';
import { type ServerHome, settleHome } from '@drydock/process/server-folder';

/** Where one embedded Postgres keeps its things. `<home>/<major>` is the data directory, so that majors can stand side by side. */
export interface PostgresFolder extends ServerHome {
  dataDir: string;
  passwordFile: string;
}

/** Settles where the data of `folder` lives, which is elsewhere when the server's account cannot walk there. */
export function settlePostgresFolder(folder: string, major: number): PostgresFolder {
  const { home, isElsewhere } = settleHome(folder);
  return { home, dataDir: path.join(home, String(major)), passwordFile: path.join(home, 'password'), isElsewhere };
}
