import { type PostgresServer, startPostgres } from '@drydock/postgres/server/postgres';
import type { Member, Running } from './supervisor';

export interface PostgresMember {
  member: Member;
  /** The server of the last start. @throws before the first */
  server(): PostgresServer;
}

/** An embedded Postgres as a supervised process: the same folder, port and password at every start. */
export function postgresMember(options: {
  name: string;
  folder: string;
  port: number;
  isEphemeral: boolean;
  /** Where we are root. */
  account: number;
  sessionBytes?: number;
  socketOnlyRoles?: string;
  onLog: (text: string) => void;
}): PostgresMember {
  let server: PostgresServer | undefined;
  const start = async (): Promise<Running> => {
    server = await startPostgres(options);
    const { port, proof, exited, stop } = server;
    return { port, proof, program: '', exited, stop };
  };
  return {
    member: { name: options.name, start },
    server: () => {
      if (server === undefined) throw new Error(`${options.name} was not started yet`);
      return server;
    },
  };
}
