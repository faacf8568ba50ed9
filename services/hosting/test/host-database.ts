import type { StartedProcess } from './ssh-processes';

/** The login to a database of a host. */
export interface Login {
  user: string;
  password: string;
  database: string;
}

/** Debian's database server on a host. Tests fill and read its databases without the driver under test. */
export interface HostDatabase extends StartedProcess {
  adminUrl: string;
  /** The first value of the first row. */
  ask(login: Login, sql: string): Promise<string>;
  /** Everything is of this version afterwards. */
  fill(login: Login, version: number): Promise<void>;
  /** A fingerprint of the database's content, which is equal for equal content. */
  fingerprint(login: Login): Promise<string>;
}
