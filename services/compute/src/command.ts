// node services/compute/dist/command.js parked | retry ID | abandon ID
// The workflows that wait for staff, of all organisations: listed, retried, or abandoned.
import { runStaffCommand } from '@drydock/workflow/http';
import { readCommandConfig } from './config';

runStaffCommand('compute', readCommandConfig);
