import { rm } from 'node:fs/promises';
import { KeptServer, type KeptServerOptions } from '@drydock/process/kept-server';
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres';
import { settlePostgresFolder } from './postgres-folder';

/** The most private memory of one session of a customer: a value of a gigabyte costs its statement, not the machine. Twice what building an index takes while a site is restored. */
export const customerSessionBytes = 512 * 2 ** 20;

export interface KeptPostgresOptions extends Omit<KeptServerOptions<PostgresServer>, 'start' | 'facts'> {
  folder: string;
  major: number;
  /** Asked at each start: what a server is for can change. */
  serverOptions: () => Omit<PostgresOptions, 'folder' | 'major'>;
}

/** One Postgres server that is started again whenever it ends by itself. Its URL is of database `postgres`, by the platform's role. */
export class KeptPostgres extends KeptServer<PostgresServer> {
  private readonly place: { folder: string; major: number };

  constructor({ folder, major, serverOptions, ...kept }: KeptPostgresOptions) {
    super({ ...kept, facts: { folder, major }, start: () => startPostgres({ ...serverOptions(), folder, major }) });
    this.place = { folder, major };
  }

  /** Stopped, and its data removed. */
  async remove(): Promise<void> {
    await this.stop();
    const { folder, major } = this.place;
    const { home } = settlePostgresFolder(folder, major);
    await rm(home, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }
}
