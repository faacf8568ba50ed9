import type { Place, SecretPlace, ServiceWithDatabase, Variables } from './place';

/**
 * Networks of containers. A process listens in its own network, and joins those of the processes that it needs or
 * calls. Only the gateway is in `front`, and it cannot reach `data`, where our databases are. From `data` and `queue`
 * the internet cannot be reached.
 */
export type Network = 'front' | 'control' | 'data' | 'queue' | 'sites' | 'managed' | 'clouds';

export interface ProcessPlan {
  name: string;
  /** The built entry point with Node's own flags, or the server that the place provides. */
  run: { flags?: readonly string[]; entry: string } | { store: 'postgres' | 'redis' };
  /** Processes that are started before it and stopped after it. */
  needs: readonly string[];
  /** Processes that it calls as well, but can start and be useful without. */
  calls?: readonly string[];
  /** The service whose database it uses. The database is created and migrated before the process starts. */
  database?: ServiceWithDatabase;
  /** Whether only `npm start` runs the process, because it replaces something that an operator has. */
  isEmbeddedOnly?: true;
  /** Whether it serves content of earlier versions. `npm start` runs it when its folder exists in the data folder. */
  isForOldData?: true;
  network: Network;
  /** Volumes that it writes, or, with `:ro`, only reads. For `npm start`, each is a folder in the data folder. */
  volumes?: readonly string[];
  /** Whether the process runs customers' programs in boxes, for which its container needs namespaces. */
  makesBoxes?: true;
  /** Memory of its container, in MB. */
  memoryMb: number;
  environment?(place: Place): Variables;
  /** Variables whose value is a secret or contains one. '' stands for a secret that the operator provides. */
  secrets?(place: SecretPlace): Variables;
}
