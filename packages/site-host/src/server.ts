import { runHost } from '@drydock/host-kit/run-host';
import { composeSiteHost } from './compose';
import { readSiteHostConfig } from './config';

void runHost(async () => composeSiteHost(readSiteHostConfig()));
