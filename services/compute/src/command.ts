// node services/compute/dist/command.js parked | retry ID | abandon ID
// Lists, retries or abandons the workflows of all organisations that wait for staff.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';

runStaffCommand('compute', readCommandConfig);
