#!/bin/sh
# Run once by the image of PostgreSQL, on an empty volume: a database each for toolgate and SpiceDB, by roles that
# own it and are nobody elsewhere. Neither is a superuser, whom row-level security would not hold.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv toolgate TOOLGATE_DB_PASSWORD
\getenv spicedb SPICEDB_DB_PASSWORD
CREATE ROLE toolgate LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'toolgate';
CREATE DATABASE toolgate OWNER toolgate;
REVOKE ALL ON DATABASE toolgate FROM PUBLIC;
CREATE ROLE spicedb LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'spicedb';
CREATE DATABASE spicedb OWNER spicedb;
REVOKE ALL ON DATABASE spicedb FROM PUBLIC;
SQL
