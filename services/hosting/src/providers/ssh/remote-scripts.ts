/**
 * The beginning of every script on the host. The text is constant: data of a site reaches a script only as "$1" and the
 * like, never as code. Secrets come by stdin and reach programs by the environment, which other accounts cannot read.
 * So no list of processes shows a secret. The first line of stdin is the password of the database's administrator. Exit
 * codes 90 to 96 tell why a script refuses (`remoteFailure` in run-on-site.ts).
 */
const remotePrelude = String.raw`
set -eu
export LC_ALL=C
root=$1 mode=$2 id=$3 fence=$4 dbhost=$5 dbport=$6 admin=$7 role=$8 release=$9
shift 9
site=$root/$mode/$id
umask 022
IFS= read -r secret
# Every host keeps this ledger of accepted and refused calls, for an operator after an incident. A failed write is
# ignored, so that a full disk can still be cleaned up.
note() {
  (umask 077; printf '{"time":"%s","site":"%s","op":"claim","fence":"%s","workflow_id":null,"outcome":"%s"}\n' \
    "$(date -u +%FT%TZ)" "$id" "$fence" "$1" >>"$root/ledger.ndjson") 2>/dev/null || :
}
claim() {
  mkdir -p "$root/fences"
  known=$root/fences/$mode-$id
  exec 9>"$known.lock"
  flock -w 30 9
  seen=$(cat "$known" 2>/dev/null || echo 0)
  if [ "$fence" -lt "$seen" ]; then note refused; echo "fence $fence after $seen" >&2; exit 90; fi
  if [ "$fence" -gt "$seen" ]; then
    printf '%s\n' "$fence" >"$known.new"
    sync "$known.new"
    mv -f "$known.new" "$known"
    sync "$root/fences"
  fi
  note accepted
}
pointer() { readlink "$site/current" 2>/dev/null | sed 's|^releases/||' || :; }
free_bytes() { df -B1 --output=avail "$root" | tail -n 1 | tr -d ' '; }
# Moves the folder away at once and removes it in the background, with whatever an interrupted removal has left. An
# ordinary account cannot empty a folder that denies its owner, so such folders are opened first. Each is opened before
# find enters it, and no link is followed.
emptying='rm -rf -- "$0"/* || { find "$0" -type d ! -perm -700 -exec chmod u+rwx {} \; ; rm -rf -- "$0"/*; }'
discard() {
  [ -e "$1" ] || return 0
  mkdir -p "$root/trash"
  mv -T "$1" "$root/trash/$mode-$id-$(date +%s%N)-$$"
  (setsid nohup nice -n 19 sh -c "$emptying" "$root/trash" >/dev/null 2>&1 </dev/null 9>&- &)
}
finish_release() {
  printf '{"release_id":"%s","database":"%s"}\n' "$release" "$1" >"$site/releases/$release/release.json.new"
  sync -f "$site/releases/$release"
  mv "$site/releases/$release/release.json.new" "$site/releases/$release/release.json"
  sync "$site/releases/$release" "$site/releases"
}
# $1 release, $2 the database of a release without release.json.
database_of() {
  [ -e "$site/releases/$1/release.json" ] || { echo "$2"; return 0; }
  sed -n 's/.*"database":"\([^"]*\)".*/\1/p' "$site/releases/$1/release.json"
}
point() {
  ln -sfn "releases/$1" "$site/current.new"
  mv -T "$site/current.new" "$site/current"
  sync "$site"
}
# Whether the current folder is an application for Passenger.
is_app() { [ -f app.js ] || [ -f passenger_wsgi.py ] || [ -f config.ru ]; }
restart_seconds() { stat -c %Y tmp/restart.txt 2>/dev/null || echo 0; }
# A dump failed. The caller decides by the messages whether the error is transient. Exits with 1 if the program
# was killed.
refuse_content() {
  [ "$1" -lt 126 ] || exit 1
  exit 96
}
# The server refuses the dump. Exits with 1 if the program was killed, which says nothing about the dump.
refuse_dump() {
  [ "$1" -lt 126 ] || exit 1
  exit 95
}
`;

/**
 * The scripts' functions for MariaDB or MySQL. A site's role and all its databases have the same hash in their names,
 * by which `drop_role` finds the databases. A grant reads a name as a pattern, so `_` gets a backslash. In binary mode
 * the client obeys only two of its own commands in a dump, `delimiter` and `charset`, so a dump can run no program on
 * the host.
 */
const remoteMysql = String.raw`
client=$(command -v mariadb || command -v mysql)
dumper=$(command -v mariadb-dump || command -v mysqldump)
reach="--no-defaults --protocol=tcp --host=$dbhost --port=$dbport"
as_admin() {
  MYSQL_PWD=$secret "$client" $reach --connect-timeout=10 --user="$admin" --batch --skip-column-names "$@" 9>&-
}
as_site() {
  program=$1
  shift
  MYSQL_PWD=$(cat "$site/database-password") "$program" $reach --user="$role" --default-character-set=utf8mb4 "$@" 9>&-
}
make_role() {
  password=$(cat "$site/database-password")
  as_admin <<SQL
CREATE USER IF NOT EXISTS '$role'@'%' IDENTIFIED BY '$password';
ALTER USER '$role'@'%' IDENTIFIED BY '$password';
SQL
}
make_database() {
  pattern=$(printf '%s' "$1" | sed 's|_|\\_|g')
  end_sessions_in "$1"
  as_admin <<SQL
DROP DATABASE IF EXISTS \`$1\`;
CREATE DATABASE \`$1\` CHARACTER SET utf8mb4;
GRANT ALL PRIVILEGES ON \`$pattern\`.* TO '$role'@'%';
SQL
}
drop_database() {
  pattern=$(printf '%s' "$1" | sed 's|_|\\_|g')
  end_sessions_in "$1"
  echo "DROP DATABASE IF EXISTS \`$1\`" | as_admin
  echo "REVOKE ALL PRIVILEGES ON \`$pattern\`.* FROM '$role'@'%'" | as_admin 2>/dev/null || :
}
drop_role() {
  echo "DROP USER IF EXISTS '$role'@'%'" | as_admin
  end_sessions
  drops=$(echo "SELECT CONCAT('DROP DATABASE \`', schema_name, '\`;') FROM information_schema.schemata
    WHERE schema_name LIKE 'd\\_${'$'}{role#s_}\\_%'" | as_admin)
  printf '%s\n' "$drops" | as_admin
}
# A session that ends by itself meanwhile is no failure. A session in a transaction would delay the removal of its
# database.
kill_where() {
  echo "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE $1" | as_admin |
    as_admin --force 2>/dev/null || :
}
end_sessions() { kill_where "user = '$role'"; }
end_sessions_in() { kill_where "db = '$1'"; }
dump_database() {
  as_site "$dumper" --single-transaction --quick --skip-lock-tables --no-tablespaces --hex-blob \
    --routines --triggers --events "$1" || refuse_content $?
}
load_database() { as_site "$client" --binary-mode --connect-timeout=10 --database="$1" || refuse_dump $?; }
ask_database() {
  as_site "$client" --batch --skip-column-names --connect-timeout=10 --database="$1" \
    -e 'SELECT count(*) FROM information_schema.tables'
}
`;

/** The scripts' functions for Postgres. The role of the site owns the database of each release. */
const remotePostgres = String.raw`
export PGHOST="$dbhost" PGPORT="$dbport" PGCONNECT_TIMEOUT=10
as_admin() { PGUSER=$admin PGPASSWORD=$secret psql -X -q -A -t -v ON_ERROR_STOP=1 -d postgres 9>&-; }
as_site() { PGUSER=$role PGPASSWORD=$(cat "$site/database-password") "$@" 9>&-; }
make_role() {
  as_admin <<SQL
SELECT 'CREATE ROLE "$role"' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '$role') \gexec
ALTER ROLE "$role" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '$(cat "$site/database-password")';
SQL
}
make_database() {
  as_admin <<SQL
DROP DATABASE IF EXISTS "$1" WITH (FORCE);
CREATE DATABASE "$1" OWNER "$role" TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE "$1" FROM PUBLIC;
SQL
}
drop_database() { echo "DROP DATABASE IF EXISTS \"$1\" WITH (FORCE)" | as_admin; }
drop_role() {
  as_admin <<SQL
SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba
WHERE rolname = '$role' \gexec
DROP ROLE IF EXISTS "$role";
SQL
}
end_sessions() {
  echo "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '$role'" | as_admin >/dev/null
}
dump_database() {
  as_site pg_dump --format=custom --compress=0 --no-owner --no-privileges --dbname="$1" || refuse_content $?
}
load_database() {
  as_site pg_restore --exit-on-error --single-transaction --no-owner --no-privileges --dbname="$1" || refuse_dump $?
}
ask_database() { as_site psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" -c 'SELECT count(*) FROM pg_catalog.pg_class'; }
`;

export type DatabaseEngine = 'postgres' | 'mysql';

const engines: Readonly<Record<DatabaseEngine, string>> = { postgres: remotePostgres, mysql: remoteMysql };

const scripts = {
  /** A release is `begun` until its release.json, which is written last, is there. */
  describe: `
[ -L "$site/current" ] || exit 0
now=$(pointer)
echo "current $now"
for made in "$site"/releases/*; do
  if [ -e "$made/release.json" ]; then echo "release $(basename "$made")"
  elif [ -d "$made" ]; then echo "begun $(basename "$made")"; fi
done
echo "free $(free_bytes)"
cd "$site/releases/$now/files" && is_app && echo "app $(restart_seconds)" || :
`,
  /** $1 database, $2 the content of site.json. The second line of stdin is the database password for a new site. */
  create: String.raw`
IFS= read -r candidate
claim
mkdir -p "$site/releases"
if [ ! -s "$site/database-password" ]; then
  (umask 077; printf '%s' "$candidate" >"$site/database-password.new")
  sync "$site/database-password.new"
  mv "$site/database-password.new" "$site/database-password"
fi
printf '%s\n' "$2" >"$site/site.json.new"
sync "$site/site.json.new"
mv "$site/site.json.new" "$site/site.json"
if [ ! -L "$site/current" ]; then
  make_role
  make_database "$1"
  mkdir -p "$site/releases/$release/files"
  finish_release "$1"
  point "$release"
fi
`,
  destroy: `
claim
discard "$site"
drop_role
`,
  /**
   * A file that changes, disappears or cannot be read is no failure, because the site keeps serving. Devices are left
   * out, because an ordinary account cannot make them again. The script reports devices, and links into a release, in
   * the form in which tar reports a socket. `--exclude` takes patterns, so special characters in the names of devices
   * are escaped. A top folder that is closed to its own account is opened first. Otherwise the site could not be
   * restored, because its safety copy would lack every file.
   */
  readFiles: String.raw`
files=$site/releases/$release/files
if [ ! -r "$files" ] || [ ! -x "$files" ]; then chmod u+rx "$files"; fi
cd "$files"
pattern=$(cd ../.. && pwd -P | sed 's/[][*?\\]/\\&/g')
find . -type l -lname "$pattern/*" -print0 2>/dev/null | tr '\n\0' '?\n' |
  sed 's/^/tar: /; s/$/: link into a release/' >&2
devices() { find . \( -type b -o -type c \) -print0 2>/dev/null || :; }
devices | tr '\n\0' '?\n' | sed 's/^/tar: /; s/$/: device ignored/' >&2
devices | sed -z 's/[][*?\\]/\\&/g; s/^/--exclude=/' |
  xargs -0 -x sh -c 'tar "$@" . || [ $? -eq 1 ]' sh --anchored --wildcards --create \
  --format=posix --numeric-owner --sparse --xattrs --xattrs-include='user.*' --acls --ignore-failed-read --file=-
`,
  /** $1 the database of a release without release.json. */
  readDatabase: `
dump_database "$(database_of "$release" "$1")"
`,
  /**
   * $1 database, $2 bytes that must be free, $3 `all` or `files`. With `files` no database is made, because the new
   * release shares the database of the current one. The folder is made before the database. If the script is killed
   * between the two, a later attempt finds the folder, and by its name the database.
   */
  beginStage: `
claim
if [ "$(pointer)" = "$release" ]; then echo 'the current release cannot be staged' >&2; exit 92; fi
free=$(free_bytes)
if [ "$free" -lt "$2" ]; then echo 'No space left on device' >&2; exit 1; fi
discard "$site/releases/$release"
mkdir "$site/releases/$release" "$site/releases/$release/files"
[ "$3" = files ] || make_database "$1"
`,
  /**
   * $1 `account` or `owner`; the rest of stdin is the tar. The script enters the release's folder while it holds the
   * lock. A later attempt moves that folder away and makes a new one, so a script of an earlier attempt cannot write
   * into the new folder. As `owner` tar may write files whose permissions exclude their own account, but cannot set
   * access lists that name other accounts.
   */
  writeFiles: String.raw`
claim
cd "$site/releases/$release/files"
exec 9>&-
as=$1
set --
if [ "$as" = owner ]; then set -- unshare --user --map-current-user --keep-caps; fi
"$@" tar --extract --preserve-permissions --no-same-owner --delay-directory-restore \
  --xattrs --xattrs-include='user.*' --acls --file=-
find . \( -type b -o -type c \) -delete
`,
  /** $1 database; the rest of stdin is the dump, which is loaded with only the rights of the site's role. */
  writeDatabase: `
claim
exec 9>&-
load_database "$1"
`,
  /** $1 database, $2 `all` or `files`. */
  endStage: `
claim
if [ "$2" = files ]; then finish_release "$(database_of "$(pointer)")"; else finish_release "$1"; fi
`,
  /**
   * $1 milliseconds. The flag file has two lines: when the freeze ends by itself (seconds since 1970), and how long it
   * was to last (seconds).
   */
  freeze: String.raw`
claim
seconds=$((($1 + 999) / 1000))
printf '%s\n%s\n' "$(($(date +%s) + seconds))" "$seconds" >"$site/maintenance.new"
mv "$site/maintenance.new" "$site/maintenance"
end_sessions
`,
  thaw: `
claim
rm -f "$site/maintenance"
`,
  /** $1 the release that must be live before the switch. */
  switchRelease: String.raw`
claim
now=$(pointer)
[ "$now" != "$release" ] || exit 0
if [ "$now" != "$1" ]; then echo "the current release is $now" >&2; exit 91; fi
if [ ! -e "$site/releases/$release/release.json" ]; then echo 'the release is not whole' >&2; exit 1; fi
seconds=$(sed -n 2p "$site/maintenance" 2>/dev/null || :)
ends=$(sed -n 1p "$site/maintenance" 2>/dev/null || :)
[ -n "$ends" ] || ends=0
if [ "$(date +%s)" -ge "$ends" ]; then
  [ -n "$seconds" ] || seconds=30
  printf '%s\n%s\n' "$(($(date +%s) + seconds))" "$seconds" >"$site/maintenance.new"
  mv "$site/maintenance.new" "$site/maintenance"
fi
point "$release"
end_sessions
`,
  /** $1 the database of a release without release.json. */
  probe: `
ask_database "$(database_of "$release" "$1")"
`,
  /**
   * Restarts the application by Passenger's contract: gives tmp/restart.txt a later mtime and reads it back. A new file
   * replaces the old one, so that no link is followed.
   */
  restartApp: `
claim
cd "$site/current/files"
is_app || exit 93
[ -L tmp ] || mkdir -p tmp || :
if [ -L tmp ] || [ ! -d tmp ]; then echo 'tmp is no folder' >&2; exit 94; fi
before=$(restart_seconds)
now=$(date +%s)
[ "$now" -gt "$before" ] || now=$((before + 1))
fresh=$(mktemp tmp/.restart-XXXXXXXXXX) || exit 94
chmod 644 "$fresh"
touch -d "@$now" "$fresh"
mv -fT "$fresh" tmp/restart.txt || { rm -f "$fresh"; exit 94; }
if [ "$(restart_seconds)" != "$now" ]; then echo 'tmp/restart.txt kept its mtime' >&2; exit 1; fi
echo "$before $now"
`,
  /**
   * $1 the database of a release without release.json. The database of the release stays if another release uses it
   * too.
   */
  retire: `
claim
if [ "$(pointer)" = "$release" ]; then echo 'the current release stays' >&2; exit 92; fi
database=$(database_of "$release" "$1")
# The folder goes last, because its release.json names the database.
grep -lsF '"database":"'"$database"'"' "$site"/releases/*/release.json |
  grep -qvF "/releases/$release/release.json" || drop_database "$database"
discard "$site/releases/$release"
`,
} as const;

export type RemoteScript = keyof typeof scripts;

/**
 * The scripts that move all bytes of a site, or wait until the bytes are on disk. They get the long limits of
 * run-on-site.ts.
 */
export const movingScripts: ReadonlySet<RemoteScript> = new Set([
  'readFiles',
  'readDatabase',
  'writeFiles',
  'writeDatabase',
  'endStage',
]);

export const textOfScript = (engine: DatabaseEngine, name: RemoteScript): string =>
  `${remotePrelude}${engines[engine]}${scripts[name]}`;
