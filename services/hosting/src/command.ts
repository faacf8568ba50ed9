// Usage: node services/hosting/dist/command.js parked | retry ID | abandon ID. Lists, retries or abandons workflows
// that wait for staff, of all organisations.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';

runStaffCommand('hosting', readCommandConfig);
