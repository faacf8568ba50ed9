import type { StartedProcess } from './ssh-processes';

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
  /** Replaces the whole content by the test content of this version. */
  fill(login: Login, version: number): Promise<void>;
  /** A text that is the same for two databases of the same content. */
  fingerprint(login: Login): Promise<string>;
}
