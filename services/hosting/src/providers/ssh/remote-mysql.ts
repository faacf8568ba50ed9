/**
 * The scripts' functions for a host's MariaDB or MySQL. A site's databases are those whose name begins with the name of
 * its role. Grants read a name as a pattern, hence the backslashes. In binary mode the client executes no commands of
 * its own from its input, so a dump can run nothing on the host.
 */
export const remoteMysql = String.raw`
client=$(command -v mariadb || command -v mysql)
dumper=$(command -v mariadb-dump || command -v mysqldump)
reach="--no-defaults --protocol=tcp --host=$dbhost --port=$dbport"
as_admin() { MYSQL_PWD=$secret "$client" $reach --connect-timeout=10 --user="$admin" --batch --skip-column-names "$@" 9>&-; }
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
  drops=$(echo "SELECT CONCAT('DROP DATABASE \`', schema_name, '\`;') FROM information_schema.schemata WHERE schema_name LIKE 'd\\_${'$'}{role#s_}\\_%'" | as_admin)
  printf '%s\n' "$drops" | as_admin
}
# A session that ends by itself meanwhile is no failure. One in a transaction would make the removal of its database wait.
kill_where() { echo "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE $1" | as_admin | as_admin --force 2>/dev/null || :; }
end_sessions() { kill_where "user = '$role'"; }
end_sessions_in() { kill_where "db = '$1'"; }
dump_database() {
  as_site "$dumper" --single-transaction --quick --skip-lock-tables --no-tablespaces --hex-blob --routines --triggers --events "$1" || refuse_content $?
}
load_database() { as_site "$client" --binary-mode --connect-timeout=10 --database="$1" || refuse_dump $?; }
ask_database() { as_site "$client" --batch --skip-column-names --connect-timeout=10 --database="$1" -e 'SELECT count(*) FROM information_schema.tables'; }
`;
