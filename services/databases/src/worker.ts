import { runProcess } from '@drydock/service-kit/run-process';
import { composeWorker } from './compose';
import { readWorkerConfig } from './config';

runProcess(composeWorker(readWorkerConfig()));
