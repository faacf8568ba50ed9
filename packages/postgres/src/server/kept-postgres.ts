import { rm } from 'node:fs/promises';
import { KeptServer, type KeptServerOptions } from '@drydock/process';
import { type PostgresOptions, type PostgresServer, settlePostgresFolder, startPostgres } from './postgres';

/**
 * The most private memory of one customer session. A value of a gigabyte then fails its statement, but does not harm
 * the machine. It is twice what building an index takes during the restore of a site.
 */
export const customerSessionBytes = 512 * 2 ** 20;

export interface KeptPostgresOptions extends Omit<KeptServerOptions<PostgresServer>, 'start' | 'facts'> {
  folder: string;
  major: number;
  /** Called at each start, because the purpose of a server can change. */
  serverOptions: () => Omit<PostgresOptions, 'folder' | 'major'>;
}

/**
 * One Postgres server that is started again whenever it ends by itself. Its URL is for the database `postgres`, with
 * the platform's role.
 */
export class KeptPostgres extends KeptServer<PostgresServer> {
  private readonly place: { folder: string; major: number };

  constructor({ folder, major, serverOptions, ...kept }: KeptPostgresOptions) {
    super({ ...kept, facts: { folder, major }, start: () => startPostgres({ ...serverOptions(), folder, major }) });
    this.place = { folder, major };
  }

  /** Stops the server and removes its data. */
  async remove(): Promise<void> {
    await this.stop();
    const { folder, major } = this.place;
    const { home } = settlePostgresFolder(folder, major);
    await rm(home, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }
}
