import { runProcess } from '@drydock/service/process/run-process';
import { composeWorker } from './compose';
import { readWorkerConfig } from './config';

runProcess(composeWorker(readWorkerConfig()));
