import { runProcess } from '@drydock/service/process';
import { composeWorker } from './compose';
import { readWorkerConfig } from './config';

runProcess(composeWorker(readWorkerConfig()));
