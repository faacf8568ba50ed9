/** Variables with the shared cluster's address. jest's global set-up sets them, and its workers inherit them. */
const adminUrlVariable = 'DRYDOCK_TEST_POSTGRES_ADMIN_URL';
const ownerPasswordVariable = 'DRYDOCK_TEST_POSTGRES_OWNER_PASSWORD';

/** The owner of every test database. Like a service's role, it is no superuser. */
export const ownerRole = 'test_owner';

export interface SharedCluster {
  adminUrl: string;
  ownerPassword: string;
}

export function publishSharedCluster(cluster: SharedCluster): void {
  process.env[adminUrlVariable] = cluster.adminUrl;
  process.env[ownerPasswordVariable] = cluster.ownerPassword;
}

/**
 * Returns the shared cluster, which jest's global set-up starts.
 * @throws outside jest
 */
export function readSharedCluster(): SharedCluster {
  const adminUrl = process.env[adminUrlVariable];
  const ownerPassword = process.env[ownerPasswordVariable];
  if (adminUrl === undefined || ownerPassword === undefined)
    throw new Error('The shared test cluster is started by jest (globalSetup)');
  return { adminUrl, ownerPassword };
}

/** Returns the URL of another database on the same server, with the same login. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}

export function ownerUrl(cluster: SharedCluster, database: string): string {
  const url = new URL(withDatabase(cluster.adminUrl, database));
  url.username = ownerRole;
  url.password = cluster.ownerPassword;
  return url.href;
}
