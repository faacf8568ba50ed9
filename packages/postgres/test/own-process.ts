import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const mb = 2 ** 20;

/**
 * Runs the body of an async function in a process of its own, because jest's process keeps the memory of earlier tests.
 * The process uses the build output. The body can use `given`, and modules by `load('dump/dump-database')`. Its result
 * is passed back as JSON.
 */
export async function inOwnProcess<T>(body: string, given: unknown): Promise<{ returned: T; grownMb: number }> {
  const script = `
    const load = (name) => require(${JSON.stringify(path.resolve(__dirname, '../dist'))} + '/' + name + '.js');
    const given = ${JSON.stringify(given)};
    const work = async () => { ${body} };
    // resourceUsage().maxRSS is not used, because it starts with the memory of the parent process.
    const most = () => Number(/VmHWM:\\s+(\\d+)/.exec(require('node:fs').readFileSync('/proc/self/status', 'utf8'))[1]) * 1024;
    const before = process.memoryUsage.rss();
    work().then((returned) => console.log(JSON.stringify({ returned, grown: most() - before })));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], { cwd: __dirname });
  const { returned, grown } = JSON.parse(stdout) as { returned: T; grown: number };
  return { returned, grownMb: Math.round(grown / mb) };
}
