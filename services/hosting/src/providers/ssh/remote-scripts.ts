import { remoteMysql } from './remote-mysql';
import { remotePostgres } from './remote-postgres';
import { remotePrelude } from './remote-prelude';

export type DatabaseEngine = 'postgres' | 'mysql';

const engines: Readonly<Record<DatabaseEngine, string>> = { postgres: remotePostgres, mysql: remoteMysql };

/** The scripts that run on the host, each behind the prelude. */
const scripts = {
  describe: `
[ -L "$site/current" ] || exit 0
now=$(pointer)
echo "current $now"
for made in "$site"/releases/*/release.json; do [ -e "$made" ] && echo "release $(basename "$(dirname "$made")")"; done
echo "free $(free_bytes)"
cd "$site/releases/$now/files" && is_app && echo "app $(restart_seconds)" || :
`,
  /** $1 database, $2 site.json; second line of stdin: a password, used when the site has none yet. */
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
   * A file is no failure if it changes or disappears while it is read, or if another account has closed it, because the
   * site keeps serving. Devices are left out by their names as patterns and reported as tar reports a socket. tar would
   * pack them, but an ordinary account cannot make them again.
   */
  readFiles: String.raw`
cd "$site/releases/$release/files"
pattern=$(cd ../.. && pwd -P | sed 's/[][*?\\]/\\&/g')
find . -type l -lname "$pattern/*" -print0 2>/dev/null | tr '\n\0' '?\n' | sed 's/^/tar: /; s/$/: link into a release/' >&2
devices() { find . \( -type b -o -type c \) -print0 2>/dev/null || :; }
devices | tr '\n\0' '?\n' | sed 's/^/tar: /; s/$/: device ignored/' >&2
devices | sed -z 's/[][*?\\]/\\&/g; s/^/--exclude=/' | xargs -0 -x sh -c 'tar "$@" . || [ $? -eq 1 ]' sh --anchored --wildcards \
  --create --format=posix --numeric-owner --sparse --xattrs --xattrs-include='user.*' --acls --ignore-failed-read --file=-
`,
  /** $1 database. */
  readDatabase: `
dump_database "$(database_of "$release" "$1")"
`,
  /**
   * $1 database, $2 bytes that must be free, $3 `all`, or `files` for a release with the database of the current one.
   */
  beginStage: `
claim
if [ "$(pointer)" = "$release" ]; then echo 'the current release cannot be staged' >&2; exit 92; fi
free=$(free_bytes)
if [ "$free" -lt "$2" ]; then echo 'No space left on device' >&2; exit 1; fi
discard "$site/releases/$release"
[ "$3" = files ] || make_database "$1"
mkdir "$site/releases/$release" "$site/releases/$release/files"
`,
  /**
   * $1 `account` or `owner`; the rest of stdin is the tar. The folder is entered under the lock, because a new attempt
   * moves it away from an older writer. As `owner` tar may write files that its account has closed, but it cannot set
   * access lists that name other accounts.
   */
  writeFiles: String.raw`
claim
cd "$site/releases/$release/files"
exec 9>&-
as=$1
set --
if [ "$as" = owner ]; then set -- unshare --user --map-current-user --keep-caps; fi
"$@" tar --extract --preserve-permissions --no-same-owner --delay-directory-restore --xattrs --xattrs-include='user.*' --acls --file=-
find . \( -type b -o -type c \) -delete
`,
  /** $1 database; the rest of stdin is the dump, restored with the rights of the site's own role alone. */
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
   * $1 milliseconds. The flag: first line when it ends by itself (seconds since 1970), second line for how long it was
   * asked (seconds).
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
  /** $1 the release that must be the current one. */
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
  /** $1 database. */
  probe: `
ask_database "$(database_of "$release" "$1")"
`,
  /**
   * By Passenger's contract: sets a later mtime of tmp/restart.txt and reads it back. A new file replaces the old one,
   * so that no link is followed.
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
  /** $1 database. It stays if another release uses it too. */
  retire: `
claim
if [ "$(pointer)" = "$release" ]; then echo 'the current release stays' >&2; exit 92; fi
database=$(database_of "$release" "$1")
# The folder says which database is its own, so it goes last.
grep -lsF '"database":"'"$database"'"' "$site"/releases/*/release.json | grep -qvF "/releases/$release/release.json" || drop_database "$database"
discard "$site/releases/$release"
`,
} as const;

export type RemoteScript = keyof typeof scripts;

/** The scripts that move every byte of a site; the others take a moment. */
export const movingScripts: ReadonlySet<RemoteScript> = new Set([
  'readFiles',
  'readDatabase',
  'writeFiles',
  'writeDatabase',
  'endStage',
]);

export const textOfScript = (engine: DatabaseEngine, name: RemoteScript): string =>
  `${remotePrelude}${engines[engine]}${scripts[name]}`;
