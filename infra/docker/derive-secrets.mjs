// Writes a file for every secret of docker-compose.yml, derived from one master key, to infra/docker/secrets.
//   node infra/docker/derive-secrets.mjs [FOLDER]                          makes a master key, and prints it once
//   DRYDOCK_MASTER_KEY=<64 hex digits> node infra/docker/derive-secrets.mjs [FOLDER]
//   DRYDOCK_MASTER_KEY=<current>,<another> while the key is rotated (docs/operating.md): who accepts a secret is given both, who uses it the current one.
//   POSTGRES_ADDRESS and REDIS_ADDRESS (host:port) are where these are, when they are not the containers of docker-compose.yml.
//   ADMIN_DATABASE_URL is a superuser's, when that Postgres was not made by docker-compose.yml.
// A file for what you bring (a bucket's key, a cloud's token) is made empty, and left as it is when it exists.
import { createHash, hkdfSync, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `usage: [DRYDOCK_MASTER_KEY=HEX] node infra/docker/derive-secrets.mjs [FOLDER]
  Writes a file for every secret to FOLDER (infra/docker/secrets). Without a master key one is made, and printed once.`;
const { given: words, isHelp } = readArguments();
function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      options: { help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    });
    if (positionals.length > 1) throw new Error(`Unexpected argument '${positionals[1]}'`);
    return { given: positionals, isHelp: values.help };
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
}
if (isHelp) {
  console.log(usage);
  process.exit(0);
}

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = path.resolve(words[0] ?? path.join(here, 'secrets'));
const given = process.env.DRYDOCK_MASTER_KEY || undefined;
function refuse(why) {
  console.error(why);
  process.exit(1);
}
if (given === undefined && fs.existsSync(folder)) {
  refuse(
    `${folder} exists. Set DRYDOCK_MASTER_KEY to the key that it was made with: another key would lock you out of your data.`,
  );
}
if (given !== undefined && !/^[0-9a-f]{64}(?:,[0-9a-f]{64})*$/i.test(given)) {
  refuse(
    'DRYDOCK_MASTER_KEY must be 64 hexadecimal digits (32 bytes), or several of these with commas between. Leave it out to have one made.',
  );
}
const masters = given?.split(',') ?? [randomBytes(32).toString('hex')];
const deriveFrom = (master, label) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(master, 'hex'), '', label, 32)).toString('hex');
/**
 * `<label>` is the value of the current master key, `<rotated label>` one of each, with commas between, or as
 * `>one >another` for Redis. `<fingerprint label>` names the login of the current value in Postgres.
 */
function derive(label, kind, sign = '') {
  const values = masters.map((master) => deriveFrom(master, label));
  if (kind === 'rotated') return sign + values.join(sign === '' ? ',' : ` ${sign}`);
  return sign + (kind === 'fingerprint' ? createHash('sha256').update(values[0]).digest('hex').slice(0, 8) : values[0]);
}

/** Values that an operator brings, instead of derived ones. */
const brought = { 'create-databases.ADMIN_DATABASE_URL': process.env.ADMIN_DATABASE_URL };
/** Addresses in URLs, by what secrets.json has in their place. */
const addresses = { '@postgres:5432/': process.env.POSTGRES_ADDRESS, '@redis:6379': process.env.REDIS_ADDRESS };
function placed(template) {
  let text = template;
  for (const [usual, address] of Object.entries(addresses)) {
    if (address) text = text.replaceAll(usual, `@${address}${usual.endsWith('/') ? '/' : ''}`);
  }
  return text;
}

// No other user of this machine can enter the folder. A container sees only its own files. It does so as a user of its
// own, so the files are readable by all.
fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
fs.chmodSync(folder, 0o700);
const templates = JSON.parse(fs.readFileSync(path.join(here, 'secrets.json'), 'utf8'));
for (const [name, template] of Object.entries(templates)) {
  const file = path.join(folder, name);
  if (template === '' && fs.existsSync(file)) continue;
  // A running container sees what is written into its file, and not a file that takes its place.
  if (fs.existsSync(file)) fs.chmodSync(file, 0o644);
  fs.writeFileSync(
    file,
    brought[name] ||
      placed(template).replace(/(>)?<(?:(rotated|fingerprint) )?([^>]+)>/g, (_match, sign, kind, label) =>
        derive(label, kind, sign),
      ),
  );
  fs.chmodSync(file, template === '' ? 0o644 : 0o444);
}
console.log(`Written to ${folder}`);
if (given === undefined) {
  console.log(
    `Master key: ${masters[0]}\nKeep it secret, backed up and off this machine: without it no backup can be read.`,
  );
}
