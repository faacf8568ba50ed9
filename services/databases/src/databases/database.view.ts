import type { ManagedDatabase as View } from '@drydock/contracts/databases/databases';
import { findSize, findVersion } from '../catalogue/catalogue';
import type { ManagedDatabase } from './database.types';

/** The database of interface.md 2.8. Drydock sells nothing, so a database has no basket line and no subscription. */
export function viewDatabase(managed: ManagedDatabase): View {
  const size = findSize(managed.size);
  return {
    id: managed.id,
    label: managed.label,
    engine: managed.engine,
    engine_version: managed.engineVersion,
    engine_label:
      findVersion(managed.engine, managed.engineVersion)?.label ?? `${managed.engine} ${managed.engineVersion}`,
    size: managed.size,
    status: managed.status,
    status_detail: managed.statusDetail,
    host: managed.host,
    port: managed.port,
    database_name: managed.databaseName,
    username: managed.username,
    high_availability: managed.highAvailability,
    vcpu: size?.vcpu ?? 0,
    ram_gb: size?.ram_gb ?? 0,
    storage_gb: size?.storage_gb ?? 0,
    tls_required: true,
    metadata: managed.metadata,
    created_at: managed.createdAt.toISOString(),
    last_backup_at: managed.lastBackupAt?.toISOString() ?? null,
    order_line_id: null,
    billing: null,
    restore_verified_at: managed.restoreVerifiedAt?.toISOString() ?? null,
  };
}
