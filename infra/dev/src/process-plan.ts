import type { Place, SecretPlace, ServiceWithDatabase, Variables } from './place';

/**
 * A network of containers. A container is in its plan's network and in the networks of the processes that it needs or
 * calls. Only the gateway is in `front`. Drydock's databases are in `data`, and the gateway is not. `data` and `queue`
 * have no route to the internet.
 */
export type Network = 'front' | 'control' | 'data' | 'queue' | 'sites' | 'managed' | 'clouds';

export interface ProcessPlan {
  name: string;
  /** A compiled program of Drydock with flags for Node, or a database server that the deployment provides. */
  run: { flags?: readonly string[]; entry: string } | { store: 'postgres' | 'redis' };
  /** The processes that are started before this process and stopped after it. */
  needs: readonly string[];
  /** The processes that this process calls but does not need for its start. */
  calls?: readonly string[];
  /** The service whose database the process uses. The database is created and migrated before the process starts. */
  database?: ServiceWithDatabase;
  /** Set if only `npm start` runs the process, because it replaces a provider of the operator. */
  isEmbeddedOnly?: true;
  /** Set if the process only serves data from earlier versions of Drydock. `npm start` runs it if its folder exists. */
  isForOldData?: true;
  network: Network;
  /** The volumes that the process writes, or only reads (`:ro`). `npm start` uses folders in the data folder. */
  volumes?: readonly string[];
  /** Set if the process runs customers' programs in boxes. Its container then may create namespaces. */
  makesBoxes?: true;
  /** The memory limit of the container, in MB. */
  memoryMb: number;
  environment?(place: Place): Variables;
  /** The variables that are or contain a secret. '' stands for a secret that the operator gives. */
  secrets?(place: SecretPlace): Variables;
}
