import {
  type SteadyWriterOptions as AnyOptions,
  SteadyWriter as AnySteadyWriter,
  type WriterSession,
} from '@drydock/testing/steady-writer';
import pg from 'pg';

export interface SteadyWriterOptions extends Omit<AnyOptions, 'connect'> {
  config: pg.ClientConfig;
  /** Distinguishes the writers of a database. */
  name: string;
}

const tableSql =
  'create table if not exists written (writer text, id bigint, at timestamptz not null default clock_timestamp(), primary key (writer, id))';

/** The table of the writers. The owner creates it before an upgrade. */
export const writerTableSql = `${tableSql}; grant all on written to public`;

/** Writes rows to Postgres. Each transaction also draws a number from the sequence `invoice_no`. */
export class SteadyWriter extends AnySteadyWriter {
  constructor({ config, name, rowsPerSecond }: SteadyWriterOptions) {
    super({ rowsPerSecond, connect: () => connect(config, name) });
  }
}

async function connect(config: pg.ClientConfig, name: string): Promise<WriterSession> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: 30_000 });
  client.on('error', () => undefined);
  await client.connect();
  return {
    write: async (id) => {
      await client.query("begin; select nextval('invoice_no')");
      await client.query('insert into written (writer, id) values ($1, $2)', [name, id]);
      await client.query('commit');
    },
    close: () => client.end(),
  };
}
