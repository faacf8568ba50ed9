import { runProcess } from '@drydock/service/process';
import { composeApi } from './compose';
import { readServerConfig } from './config';

runProcess(composeApi(readServerConfig()));
