/** The scripts' functions for a host's Postgres; each release's database belongs to the site's role. */
export const remotePostgres = String.raw`
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
SELECT format('DROP DATABASE %I WITH (FORCE)', datname) FROM pg_database JOIN pg_roles ON pg_roles.oid = datdba WHERE rolname = '$role' \gexec
DROP ROLE IF EXISTS "$role";
SQL
}
end_sessions() { echo "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '$role'" | as_admin >/dev/null; }
dump_database() { as_site pg_dump --format=custom --compress=0 --no-owner --no-privileges --dbname="$1" || refuse_content $?; }
load_database() {
  as_site pg_restore --exit-on-error --single-transaction --no-owner --no-privileges --dbname="$1" || refuse_dump $?
}
ask_database() { as_site psql -X -q -A -t -v ON_ERROR_STOP=1 -d "$1" -c 'SELECT count(*) FROM pg_catalog.pg_class'; }
`;
