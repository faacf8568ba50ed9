import { once } from 'node:events';
import net from 'node:net';
import { startTcpFaultProxy, type TcpFaultProxy } from './tcp-fault-proxy';

describe('the TCP fault proxy, before a server that echoes', () => {
  let echo: net.Server;
  let proxy: TcpFaultProxy;
  beforeEach(async () => {
    echo = net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => undefined).pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    const address = echo.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    proxy = await startTcpFaultProxy({ host: '127.0.0.1', port: address.port });
  });
  afterEach(async () => {
    await proxy.close();
    echo.close();
  });

  const connect = async () => {
    const socket = net.connect(proxy.port, '127.0.0.1');
    const got: Buffer[] = [];
    socket.on('data', (chunk) => got.push(chunk)).on('error', () => undefined);
    await once(socket, 'connect');
    const echoed = async (text: string): Promise<number> => {
      const startedMs = performance.now();
      const answered = once(socket, 'data');
      socket.write(text);
      await answered;
      return performance.now() - startedMs;
    };
    return { socket, echoed, text: () => Buffer.concat(got).toString() };
  };

  it('passes bytes as they are, late or slowly', async () => {
    const { socket, echoed, text } = await connect();
    await echoed('hello');
    expect(text()).toBe('hello');
    proxy.faults.latencyMs = 60;
    expect(await echoed('x')).toBeGreaterThan(110);
    proxy.faults.latencyMs = 0;
    proxy.faults.bytesPerSecond = 10_000;
    expect(await echoed('y'.repeat(1_000))).toBeGreaterThan(180);
    socket.destroy();
  });

  it('swallows everything while it is a black hole, and nothing is lost after', async () => {
    const { socket, text } = await connect();
    proxy.faults.isBlackhole = true;
    socket.write('late');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(text()).toBe('');
    proxy.faults.isBlackhole = false;
    await once(socket, 'data');
    expect(text()).toBe('late');
    socket.destroy();
  });

  it('resets, half-closes, and cuts after so many bytes', async () => {
    const first = await connect();
    await first.echoed('a');
    const failure = once(first.socket, 'error');
    proxy.reset();
    expect((await failure)[0]).toMatchObject({ code: 'ECONNRESET' });

    const second = await connect();
    await second.echoed('a');
    proxy.halfClose();
    await once(second.socket, 'end');
    second.socket.destroy();

    const third = await connect();
    await third.echoed('a');
    proxy.cutAfter('upstream', 3);
    third.socket.write('abcdef');
    await new Promise((resolve) => third.socket.once('close', resolve));
    expect(third.text()).toBe('aabc');
  });
});
