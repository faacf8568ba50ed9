#!/bin/sh
# Run once by the postgres image when its volume is empty: one database and one role per service, and nobody else gets in.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC;
SQL
for service in keys hosting compute agency databases; do
  password=$(eval "printf %s \"\$$(printf %s "$service" | tr a-z A-Z)_DB_PASSWORD\"")
  psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres --set service="$service" --set password="$password" <<'SQL'
CREATE ROLE :"service" LOGIN PASSWORD :'password';
CREATE DATABASE :"service" OWNER :"service";
REVOKE CONNECT ON DATABASE :"service" FROM PUBLIC;
SQL
done
