import type { Claim } from '@drydock/agent/database/client';
import type { Order } from './database-provider';

export const claimOf = ({ fence, workflowId, signal }: Order): Claim => ({ fence, workflowId, signal });
