import type { Claim } from '@drydock/database-host/client';
import type { Order } from './database-provider';

export const claimOf = ({ fence, workflowId, signal }: Order): Claim => ({ fence, workflowId, signal });
