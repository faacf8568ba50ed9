import { closeOnSignal } from '@drydock/service-kit/shutdown';
import { composeApi } from './compose';
import { readServerConfig } from './config';

const server = composeApi(readServerConfig());
closeOnSignal(server.lifetime, server.log);
server.start().then(
  ({ url }) => server.log.info({ url }, 'listening'),
  (error: unknown) => {
    server.log.fatal({ err: error }, 'could not start');
    process.exit(1);
  },
);
