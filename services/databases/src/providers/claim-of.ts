import type { Claim } from '@drydock/agent/database/client';
import type { FencedCall } from './database-provider';

export const claimOf = ({ fence, workflowId, signal }: FencedCall): Claim => ({ fence, workflowId, signal });
