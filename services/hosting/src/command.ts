// Usage: node services/hosting/dist/command.js parked | retry ID | abandon ID. Lists, retries or abandons the workflows
// that wait for staff, whatever organisation they belong to.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';

runStaffCommand('hosting', readCommandConfig);
