import net from 'node:net';

const timeoutMs = 1000;

/**
 * Whether a Redis with this password answers PING on loopback. A server that is still loading its file answers with an
 * error: false.
 */
export function pingRedis(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    const settle = (isUp: boolean): void => {
      socket.destroy();
      resolve(isUp);
    };
    socket.setTimeout(timeoutMs, () => settle(false));
    socket.on('error', () => settle(false));
    socket.on('close', () => resolve(false));
    socket.on('data', (chunk) => {
      answer += chunk.toString();
      if (answer.includes('+PONG')) settle(true);
      else if (answer.includes('-')) settle(false);
    });
  });
}
