// The entry of `npm start`, `npm test` and the other scripts: installs with the pinned pnpm, builds, and starts the
// compiled program of the command. This file needs only Node 20 and npm, because it runs before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
process.chdir(root);

/** The program of each command. `needs` lists the tasks that run before the program. */
const commands = {
  start: { program: 'infra/dev/dist/start.js', needs: ['install', 'build'] },
  test: { program: 'infra/dev/dist/run-tests.js', needs: ['install', 'build'] },
  'test:all': { program: 'infra/dev/dist/run-tests.js', args: ['--all'], needs: ['install', 'build'] },
  check: { program: 'infra/dev/dist/run-tests.js', args: ['--checks-only'], needs: ['install', 'build'] },
  house: { program: 'packages/testing/dist/conventions/house.js', needs: ['install', 'build'] },
  build: { needs: ['install', 'build'] },
  mutants: { program: 'infra/dev/dist/mutants.js', needs: ['install', 'build'] },
  bench: { program: 'infra/bench/dist/bench.js', needs: ['install', 'build'] },
  chaos: { program: 'infra/dev/dist/run-tests.js', args: ['--chaos'], needs: ['install', 'build'] },
  'chaos:load': {
    program: 'infra/dev/dist/run-tests.js',
    args: ['--chaos', 'infra/dev/src/e2e/load.test.ts'],
    needs: ['install', 'build'],
  },
  dev: { program: 'infra/dev/dist/dev-service.js', needs: ['install', 'build'] },
  bootstrap: { program: 'services/keys/dist/bootstrap.js', needs: ['install', 'build'] },
  'dev:call': { program: 'infra/dev/dist/dev-call.js', needs: [] },
  'migrate:new': { program: 'infra/dev/dist/migrate-new.js', needs: ['install', 'build'] },
  compose: { program: 'infra/dev/dist/compose.js', needs: ['install', 'build'] },
  helm: { program: 'infra/dev/dist/helm.js', needs: ['install', 'build'] },
  engines: { program: 'infra/dev/dist/engines.js', needs: ['install', 'build'] },
  // An existing `drydock` is not built again, so that a call of the API does not wait for a build.
  drydock: {
    program: 'packages/cli/dist/drydock.js',
    needs: fs.existsSync('packages/cli/dist/drydock.js') ? [] : ['install', 'build'],
  },
  // A build of everything generates the client and `drydock` from docs/openapi.json. So the program that writes that
  // file is built without them.
  openapi: { program: 'services/gateway/dist/write-openapi.js', needs: ['install', 'buildGateway'] },
};

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Drydock needs Node 20.19 or newer; this is ${process.versions.node}.`);
  process.exit(1);
}

const pnpmSpec = JSON.parse(fs.readFileSync('package.json', 'utf8')).packageManager;
const env = {
  ...process.env,
  DRYDOCK_COMMAND_STARTED_MS: String(Date.now()),
  PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}`,
  TURBO_TELEMETRY_DISABLED: '1',
  TURBO_NO_UPDATE_NOTIFIER: '1',
  DO_NOT_TRACK: '1',
  CHECKPOINT_DISABLE: '1',
  PRISMA_HIDE_UPDATE_MESSAGE: '1',
  COREPACK_ENABLE_DOWNLOAD_PROMPT: '0',
  // Prisma's CLI downloads its schema engine unless this variable names an executable file. The commands generate,
  // validate and format never run the engine, so any executable is good enough.
  PRISMA_SCHEMA_ENGINE_BINARY: process.env.PRISMA_SCHEMA_ENGINE_BINARY ?? process.execPath,
};
// npm passes its own settings on as npm_config_*. pnpm would read them as settings for pnpm.
for (const name of Object.keys(env)) if (/^npm_config_/i.test(name)) delete env[name];

const say = (line) => process.stderr.write(`${line}\n`);
const secondsSince = (started) => ((performance.now() - started) / 1000).toFixed(1);

/** The child process that runs now, or null. */
let running = null;
let stoppedBy = null;

/** Passes a signal on to the child process. This process ends after the child, or at once if there is no child. */
function stop(signal) {
  stoppedBy ??= signal;
  if (running === null) process.exit(1);
  running.kill(signal);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stop(signal));

// A killed npm passes no signal on. When npm has died, this process has another parent.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent && stoppedBy === null) stop('SIGTERM');
}, 500).unref();

/** Runs a program and resolves with its exit code. */
function run(bin, args, options) {
  return new Promise((resolve) => {
    running = spawn(bin, args, options);
    running.on('error', (error) => {
      say(error.message);
      resolve(1);
    });
    running.on('close', (code, signal) => {
      running = null;
      resolve(code ?? (signal === null ? 0 : 1));
    });
  });
}

/**
 * Runs a program and calls `onLine` with each line of its output. If the program fails, its whole output is printed and
 * this process ends with its exit code.
 */
async function must(bin, args, onLine, extra = {}) {
  let output = '';
  let unread = '';
  const options = { env: { ...env, ...extra }, stdio: ['ignore', 'pipe', 'pipe'] };
  const ended = run(bin, args, options);
  for (const stream of [running.stdout, running.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      const lines = (unread + text).split('\n');
      unread = lines.pop();
      lines.forEach(onLine);
    });
  }
  const code = await ended;
  if (stoppedBy !== null) process.exit(1);
  if (code === 0) return;
  say(`${bin} ${args.join(' ')} failed\n${output}`);
  process.exit(code);
}

/** Returns a digest of everything that an install depends on. */
function installDigest() {
  const manifests = ['packages', 'services', 'infra'].flatMap((folder) =>
    fs
      .readdirSync(folder)
      .map((name) => `${folder}/${name}/package.json`)
      .filter((file) => fs.existsSync(file)),
  );
  const hash = createHash('sha256').update(
    `${process.platform}-${process.arch}-${process.versions.modules}-${pnpmSpec}`,
  );
  for (const file of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...manifests])
    hash.update(fs.readFileSync(file));
  return hash.digest('hex');
}

/**
 * Returns the command that runs pnpm: the copy in node_modules or the one on the PATH, if its major version is the
 * pinned one. Otherwise npx fetches the pinned version.
 */
function findPnpm() {
  const wanted = pnpmSpec.split('@')[1].split('.')[0];
  const fits = (bin) => {
    const result = spawnSync(bin, ['--version'], { env, encoding: 'utf8' });
    return result.status === 0 && result.stdout.trim().split('.')[0] === wanted;
  };
  const local = path.join(root, 'node_modules/.bin/pnpm');
  if (fs.existsSync(local) && fits(local)) return [local];
  return fits('pnpm') ? ['pnpm'] : ['npx', '--yes', '--prefer-offline', '--loglevel=error', pnpmSpec];
}

const tasks = {
  async install() {
    const stamp = 'node_modules/.install-stamp';
    const digest = installDigest();
    if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === digest) return;
    const started = performance.now();
    say('Installing dependencies (about a minute the first time) …');
    const [bin, ...first] = findPnpm();
    let toldAt = started;
    const onLine = (line) => {
      if (!line.startsWith('Progress:') || performance.now() - toldAt < 3000) return;
      toldAt = performance.now();
      say(`  ${line}`);
    };
    const args = [...first, 'install', '--frozen-lockfile', '--prefer-offline', '--reporter=append-only'];
    await must(bin, args, onLine, { CI: '1' });
    fs.writeFileSync(stamp, digest);
    say(`Dependencies installed in ${secondsSince(started)} s`);
  },
  build: () => build([]),
  buildGateway: () => build(['--filter=@drydock/gateway...']),
};

/** Builds the packages that turbo's `filters` select, or all packages if there is no filter. */
async function build(filters) {
  const started = performance.now();
  let packages = 0;
  let begun = 0;
  const onLine = (line) => {
    packages = Number(/Running build in (\d+) packages/.exec(line)?.[1] ?? packages);
    const name = /^(@drydock\/\S+):build: cache miss/.exec(line)?.[1];
    if (name === undefined) return;
    if (begun === 0) say('Building (a minute or two the first time) …');
    begun += 1;
    say(`  ${String(begun).padStart(2)} of at most ${packages}: ${name}`);
  };
  await must(
    'turbo',
    [
      'run',
      'build',
      '--concurrency=10',
      '--output-logs=new-only',
      '--log-prefix=task',
      '--log-order=stream',
      ...filters,
    ],
    onLine,
  );
  if (begun > 0) say(`Built in ${secondsSince(started)} s`);
}

const [name = 'start', ...rest] = process.argv.slice(2);
if (name === '--help' || name === '-h') {
  process.stdout.write(`usage: npm run COMMAND [-- ARGUMENTS]\n  ${Object.keys(commands).join(', ')}\n`);
  process.exit(0);
}
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (command === undefined) {
  say(`There is no command "${name}". There are: ${Object.keys(commands).join(', ')}.`);
  process.exit(1);
}
for (const need of command.needs) await tasks[need]();
if (command.program !== undefined) {
  const args = ['--enable-source-maps', command.program, ...(command.args ?? []), ...rest];
  process.exit(await run(process.execPath, args, { env, stdio: 'inherit' }));
}
