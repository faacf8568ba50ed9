import { runHost } from '@drydock/host-kit/run-host';
import { composeDatabaseHost } from './compose';
import { readDatabaseHostConfig } from './config';

void runHost(async () => composeDatabaseHost(readDatabaseHostConfig()));
