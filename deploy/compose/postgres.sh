#!/bin/sh
# Run once by the image of PostgreSQL, on an empty volume: a database each for toolgate and SpiceDB. Of toolgate's two
# roles one owns the tables, and makes and upgrades them; the other one uses them, and row-level security holds it.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\getenv owner OWNER_PASSWORD
\getenv app APP_PASSWORD
\getenv spicedb SPICEDB_PASSWORD
CREATE ROLE toolgate_owner LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'owner';
CREATE ROLE toolgate_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'app';
CREATE ROLE spicedb LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE PASSWORD :'spicedb';
CREATE DATABASE spicedb OWNER spicedb;
REVOKE ALL ON DATABASE spicedb FROM PUBLIC;
CREATE DATABASE toolgate OWNER toolgate_owner;
REVOKE ALL ON DATABASE toolgate FROM PUBLIC;
GRANT CONNECT ON DATABASE toolgate TO toolgate_app;
\connect toolgate
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO toolgate_app;
ALTER DEFAULT PRIVILEGES FOR ROLE toolgate_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO toolgate_app;
ALTER DEFAULT PRIVILEGES FOR ROLE toolgate_owner GRANT USAGE ON SEQUENCES TO toolgate_app;
SQL
