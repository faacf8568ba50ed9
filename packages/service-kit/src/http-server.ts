import { createServer, type RequestListener, type Server } from 'node:http';

/**
 * An HTTP server that outlives its clients' manners. `connectionsCheckingInterval` matters as much as the timeouts: at its default of 30 s
 * a slowloris connection lives half a minute whatever `headersTimeout` says.
 */
export function createHttpServer(listener: RequestListener): Server {
  const server = createServer(
    {
      headersTimeout: 5_000,
      requestTimeout: 10_000,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: 65_000,
      maxHeaderSize: 16_384,
      requireHostHeader: true,
    },
    listener,
  );
  server.maxHeadersCount = 100;
  return server;
}

/** Resolves with the address once it listens. `port` 0 takes a free one. */
export function listen(server: Server, port: number, host = '127.0.0.1'): Promise<{ url: string; port: number }> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
      resolve({ url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`, port: address.port });
    });
  });
}

const idleSweepMs = 50;

/**
 * Stops accepting and waits for the requests that are running. Idle connections are closed again and again: one whose last answer went out
 * after `close` would otherwise stay for its whole keep-alive.
 */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const sweep = setInterval(() => server.closeIdleConnections(), idleSweepMs);
    server.close(() => {
      clearInterval(sweep);
      resolve();
    });
  });
}
