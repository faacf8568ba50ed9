import { runProcess } from '@drydock/service-kit/run-process';
import { composeApi } from './compose';
import { readServerConfig } from './config';

runProcess(composeApi(readServerConfig()));
