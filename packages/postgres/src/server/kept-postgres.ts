import { rm } from 'node:fs/promises';
import { KeptServer, type KeptServerOptions } from '@drydock/process';
import { type PostgresOptions, type PostgresServer, settlePostgresFolder, startPostgres } from './postgres';

/**
 * The most private memory of a customer's session. A larger value fails its statement instead of harming the machine.
 * It is twice the memory for building an index during a site's restore.
 */
export const customerSessionBytes = 512 * 2 ** 20;

export interface KeptPostgresOptions extends Omit<KeptServerOptions<PostgresServer>, 'start' | 'facts'> {
  folder: string;
  major: number;
  /** Returns the options. It is called at each start, because a server's purpose can change. */
  serverOptions: () => Omit<PostgresOptions, 'folder' | 'major'>;
}

/**
 * A Postgres server that is restarted whenever it ends. Its URL is for the database `postgres` with the platform's
 * role.
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
