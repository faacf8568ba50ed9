/**
 * The beginning of every script on the host. It is constant: a site's data reaches a script as "$1" and the like, never
 * as code.
 * Secrets come by stdin and reach programs by their environment, which only the same account can read, so that no list
 * of processes shows them.
 * The first line of stdin is the password of the database's administrator. Exit codes 90 to 96 are permanent refusals
 * (ssh-errors.ts).
 */
export const remotePrelude = String.raw`
set -eu
export LC_ALL=C
root=$1 mode=$2 id=$3 fence=$4 dbhost=$5 dbport=$6 admin=$7 role=$8 release=$9
shift 9
site=$root/$mode/$id
umask 022
IFS= read -r secret
# What was let in and what was not, as every host keeps it: for an operator after an incident. A full disk keeps nobody from making room on it.
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
# What an earlier removal has left, because the host went down, goes along.
discard() {
  [ -e "$1" ] || return 0
  mkdir -p "$root/trash"
  mv -T "$1" "$root/trash/$mode-$id-$(date +%s%N)-$$"
  (setsid nohup nice -n 19 sh -c 'rm -rf -- "$0"/*' "$root/trash" >/dev/null 2>&1 </dev/null 9>&- &)
}
finish_release() {
  printf '{"release_id":"%s","database":"%s"}\n' "$release" "$1" >"$site/releases/$release/release.json.new"
  sync -f "$site/releases/$release"
  mv "$site/releases/$release/release.json.new" "$site/releases/$release/release.json"
  sync "$site/releases/$release" "$site/releases"
}
# $1 release, $2 what its database is called where it does not say.
database_of() {
  [ -e "$site/releases/$1/release.json" ] || { echo "$2"; return 0; }
  sed -n 's/.*"database":"\([^"]*\)".*/\1/p' "$site/releases/$1/release.json"
}
point() {
  ln -sfn "releases/$1" "$site/current.new"
  mv -T "$site/current.new" "$site/current"
  sync "$site"
}
# An application as Passenger finds one, in the folder where we are.
is_app() { [ -f app.js ] || [ -f passenger_wsgi.py ] || [ -f config.ru ]; }
restart_seconds() { stat -c %Y tmp/restart.txt 2>/dev/null || echo 0; }
# What cannot be read out of a database; the caller decides by its words whether it may pass.
refuse_content() {
  [ "$1" -lt 126 ] || exit 1
  exit 96
}
# A program that was killed says nothing about the dump.
refuse_dump() {
  [ "$1" -lt 126 ] || exit 1
  exit 95
}
`;
