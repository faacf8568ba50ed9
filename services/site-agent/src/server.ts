import { runHost } from '@drydock/agent/host';
import { composeSiteHost } from './compose';
import { readSiteHostConfig } from './config';

void runHost(async () => composeSiteHost(readSiteHostConfig()));
