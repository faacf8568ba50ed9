// node services/compute/dist/command.js parked | retry ID | abandon ID
// Lists the workflows that wait for staff, whatever their organisation, or retries or abandons one of them.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';

runStaffCommand('compute', readCommandConfig);
