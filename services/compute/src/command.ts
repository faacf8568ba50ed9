// node services/compute/dist/command.js parked | retry ID | abandon ID
// `parked` lists the workflows of all organisations that wait for staff. `retry` and `abandon` act on one of them.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';

runStaffCommand('compute', readCommandConfig);
