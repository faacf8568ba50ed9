import { runHost } from '@drydock/agent/host';
import { composeDatabaseHost } from './compose';
import { readDatabaseHostConfig } from './config';

void runHost(async () => composeDatabaseHost(readDatabaseHostConfig()));
