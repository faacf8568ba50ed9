import { commonStatuses, HostError } from '../host/host-error';

export const databaseHostStatuses = {
  ...commonStatuses,
  unknown_database: 404,
  unknown_upgrade: 404,
  major_not_installed: 422,
  upgrade_mismatch: 409,
  already_switched: 409,
  not_caught_up: 409,
  instance_down: 503,
} as const;

export type DatabaseHostErrorCode = keyof typeof databaseHostStatuses;

/** A refusal by a database host, or no answer from it. */
export class DatabaseHostError extends HostError<DatabaseHostErrorCode> {
  override readonly name = 'DatabaseHostError';
}
