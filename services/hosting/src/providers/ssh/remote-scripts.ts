/**
 * What runs on the host. Constants: a site's words reach them as "$1" only, and secrets by stdin, where no list of processes shows them.
 * First line of stdin: password of the database's administrator.
 */
const begin = String.raw`
set -eu
export LC_ALL=C
root=$1 mode=$2 id=$3 fence=$4 PGHOST=$5 PGPORT=$6 admin=$7 role=$8 release=$9
shift 9
export PGHOST PGPORT PGCONNECT_TIMEOUT=10
site=$root/$mode/$id
umask 022
IFS= read -r secret
claim() {
  mkdir -p "$root/fences"
  known=$root/fences/$mode-$id
  exec 9>"$known.lock"
  flock -w 60 9
  seen=$(cat "$known" 2>/dev/null || echo 0)
  if [ "$fence" -lt "$seen" ]; then echo "fence $fence after $seen" >&2; exit 90; fi
  if [ "$fence" -gt "$seen" ]; then
    printf '%s\n' "$fence" >"$known.new"
    sync "$known.new"
    mv -f "$known.new" "$known"
    sync "$root/fences"
  fi
}
as_admin() { PGUSER=$admin PGPASSWORD=$secret psql -X -q -A -t -v ON_ERROR_STOP=1 -d postgres 9>&-; }
as_site() { PGUSER=$role PGPASSWORD=$(cat "$site/database-password") "$@" 9>&-; }
pointer() { readlink "$site/current" 2>/dev/null | sed 's|^releases/||' || :; }
discard() {
  [ -e "$1" ] || return 0
  mkdir -p "$root/trash"
  aside=$(mktemp -d "$root/trash/XXXXXXXXXX")
  mv -T "$1" "$aside/it"
  (nohup nice -n 19 rm -rf "$aside" >/dev/null 2>&1 </dev/null 9>&- &)
}
finish_release() {
  printf '{"release_id":"%s","database":"%s"}\n' "$release" "$1" >"$site/releases/$release/release.json.new"
  sync -f "$site/releases/$release"
  mv "$site/releases/$release/release.json.new" "$site/releases/$release/release.json"
  sync "$site/releases/$release" "$site/releases"
}
point() {
  ln -sfn "releases/$1" "$site/current.new"
  mv -T "$site/current.new" "$site/current"
  sync "$site"
}
end_sessions() {
  echo "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '$role'" | as_admin >/dev/null
}
make_database() {
  as_admin <<SQL
DROP DATABASE IF EXISTS "$1" WITH (FORCE);
CREATE DATABASE "$1" OWNER "$role" TEMPLATE template0 ENCODING 'UTF8';
REVOKE ALL ON DATABASE "$1" FROM PUBLIC;
SQL
}
`;

const script = (body: string): string => `${begin}${body}`;

export const remoteScripts = {
  describe: script(String.raw`
[ -L "$site/current" ] || exit 0
echo "current $(pointer)"
for made in "$site"/releases/*/release.json; do [ -e "$made" ] && echo "release $(basename "$(dirname "$made")")"; done
echo "free $(df -P -B1 --output=avail "$root" | tail -n 1)"
`),
  /** $1 database, $2 site.json; second line of stdin: a password, used when the site has none yet. */
  create: script(String.raw`
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
  as_admin <<SQL
SELECT 'CREATE ROLE "$role"' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '$role') \gexec
ALTER ROLE "$role" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD '$(cat "$site/database-password")';
SQL
  make_database "$1"
  mkdir -p "$site/releases/$release/files"
  finish_release "$1"
  point "$release"
fi
`),
  destroy: script(String.raw`
claim
discard "$site"
as_admin <<SQL
SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba WHERE rolname = '$role' \gexec
DROP ROLE IF EXISTS "$role";
SQL
`),
  /** A file that changes or goes while it is read is no failure: the site goes on serving. */
  readFiles: script(String.raw`
cd "$site/releases/$release/files"
tar --create --format=posix --numeric-owner --file=- . || [ $? -eq 1 ]
`),
  /** $1 database. */
  readDatabase: script(String.raw`
as_site pg_dump --format=custom --compress=0 --no-owner --no-privileges --dbname="$1"
`),
  /** $1 database, $2 bytes that must be free. */
  beginStage: script(String.raw`
claim
if [ "$(pointer)" = "$release" ]; then echo 'the current release cannot be staged' >&2; exit 92; fi
free=$(df -P -B1 --output=avail "$root" | tail -n 1)
if [ "$free" -lt "$2" ]; then echo 'No space left on device' >&2; exit 1; fi
discard "$site/releases/$release"
make_database "$1"
mkdir "$site/releases/$release" "$site/releases/$release/files"
`),
  /** The rest of stdin is the tar. The folder is entered under the lock: whoever begins again moves it away from under an older writer. */
  writeFiles: script(String.raw`
claim
cd "$site/releases/$release/files"
exec 9>&-
tar --extract --preserve-permissions --no-same-owner --delay-directory-restore --file=-
find . \( -type b -o -type c \) -delete
find . ! -type l -perm /6000 -exec chmod ug-s {} +
`),
  /** $1 database; the rest of stdin is the dump, restored with the rights of the site's own role alone. */
  writeDatabase: script(String.raw`
claim
exec 9>&-
as_site pg_restore --exit-on-error --single-transaction --no-owner --no-privileges --dbname="$1" || exit 95
`),
  /** $1 database. */
  endStage: script(String.raw`
claim
finish_release "$1"
`),
  /** $1 milliseconds. The flag: first line when it ends by itself (seconds since 1970), second line for how long it was asked (seconds). */
  freeze: script(String.raw`
claim
seconds=$((($1 + 999) / 1000))
printf '%s\n%s\n' "$(($(date +%s) + seconds))" "$seconds" >"$site/maintenance.new"
mv "$site/maintenance.new" "$site/maintenance"
end_sessions
`),
  thaw: script(String.raw`
claim
rm -f "$site/maintenance"
`),
  /** $1 the release that must be the current one. */
  switchRelease: script(String.raw`
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
`),
  /** $1 database. */
  probe: script(String.raw`
as_site psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" -c 'SELECT count(*) FROM pg_catalog.pg_class'
`),
  /** $1 database. */
  retire: script(String.raw`
claim
if [ "$(pointer)" = "$release" ]; then echo 'the current release stays' >&2; exit 92; fi
discard "$site/releases/$release"
echo "DROP DATABASE IF EXISTS \"$1\" WITH (FORCE)" | as_admin
`),
} as const;
