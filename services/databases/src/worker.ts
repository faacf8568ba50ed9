import { closeOnSignal } from '@drydock/service-kit/shutdown';
import { composeWorker } from './compose';
import { readWorkerConfig } from './config';

const worker = composeWorker(readWorkerConfig());
closeOnSignal(worker.lifetime, worker.log);
worker.start().then(
  ({ url }) => worker.log.info({ url }, 'listening'),
  (error: unknown) => {
    worker.log.fatal({ err: error }, 'could not start');
    process.exit(1);
  },
);
