// node services/databases/dist/command.js parked | retry ID | abandon ID
// The workflows that wait for staff, of all organisations: listed, retried, or abandoned.
import { runStaffCommand } from '@drydock/workflow/http/staff-command';
import { readCommandConfig } from './config';
import { abandoned } from './upgrades/abandoned';

runStaffCommand('databases', readCommandConfig, abandoned);
