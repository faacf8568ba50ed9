import type { Place, SecretPlace, ServiceWithDatabase, Variables } from './place';

/**
 * Networks of containers. A process listens in its own network, and joins the networks of processes that it needs or
 * calls. Only the gateway is in `front`. The gateway cannot reach `data`, where Drydock's databases are. `data` and
 * `queue` have no route to the internet.
 */
export type Network = 'front' | 'control' | 'data' | 'queue' | 'sites' | 'managed' | 'clouds';

export interface ProcessPlan {
  name: string;
  /** The compiled entry point with flags for Node, or a server that the deployment provides. */
  run: { flags?: readonly string[]; entry: string } | { store: 'postgres' | 'redis' };
  /** Processes that are started before this process and stopped after it. */
  needs: readonly string[];
  /** Other processes that this process calls, but does not need for its start. */
  calls?: readonly string[];
  /** The service whose database the process uses. The database is created and migrated before the process starts. */
  database?: ServiceWithDatabase;
  /** Set if only `npm start` runs the process, because it replaces a provider of the operator. */
  isEmbeddedOnly?: true;
  /** Set if the process serves content of earlier versions. `npm start` runs the process only if its folder exists. */
  isForOldData?: true;
  network: Network;
  /** Volumes that the process writes, or only reads (`:ro`). `npm start` uses folders in the data folder. */
  volumes?: readonly string[];
  /** Set if the process isolates customers' programs. Its container then needs namespaces. */
  makesBoxes?: true;
  /** The memory limit of the container, in MB. */
  memoryMb: number;
  environment?(place: Place): Variables;
  /** Variables that are or contain a secret. '' stands for a secret that the operator provides. */
  secrets?(place: SecretPlace): Variables;
}
