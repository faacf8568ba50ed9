import type { Refusal } from '@drydock/workflow/definition/refusal.rules';
import type { ManagedDatabase } from './database.types';

export const refuseUnavailable = ({ status }: Pick<ManagedDatabase, 'status'>): Refusal | null =>
  status === 'available' ? null : { code: 'database_not_available' };
