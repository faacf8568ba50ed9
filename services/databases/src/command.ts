// Usage: node services/databases/dist/command.js parked | retry ID | abandon ID
// Lists, retries or abandons workflows that wait for staff. The list has the workflows of all organisations.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';
import { abandoned } from './workflows';

runStaffCommand('databases', readCommandConfig, abandoned);
