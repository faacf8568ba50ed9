// Usage: node services/databases/dist/command.js parked | retry ID | abandon ID
// Lists, retries or abandons the workflows of all organisations that wait for staff.
import { runStaffCommand } from '@drydock/workflow/http/staff-command';
import { abandoned } from './abandoned';
import { readCommandConfig } from './config';

runStaffCommand('databases', readCommandConfig, abandoned);
