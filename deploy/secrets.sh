#!/bin/sh
# Makes the secrets of compose.yaml, once: deploy/secrets/NAME.env, read by nobody else and never committed.
# A file that is there is left as it is: its passwords are in the volumes by then.
set -eu
cd "$(dirname "$0")"
umask 077
if [ -e secrets/toolgate.env ]; then
    echo "deploy/secrets has them; nothing was changed."
    exit 0
fi
secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
super=$(secret) owner=$(secret) app=$(secret) relations=$(secret) valkey=$(secret) key=$(secret)
mkdir -p secrets
cat > secrets/postgres.env <<END
POSTGRES_PASSWORD=$super
OWNER_PASSWORD=$owner
APP_PASSWORD=$app
SPICEDB_PASSWORD=$relations
END
cat > secrets/owner.env <<END
TOOLGATE_STORE__MIGRATE_URL=postgresql://toolgate_owner:$owner@postgres:5432/toolgate
END
cat > secrets/valkey.env <<END
VALKEY_PASSWORD=$valkey
END
cat > secrets/spicedb.env <<END
SPICEDB_GRPC_PRESHARED_KEY=$key
SPICEDB_DATASTORE_CONN_URI=postgres://spicedb:$relations@postgres:5432/spicedb?sslmode=disable
END
# Last: whoever sees it knows that the others are whole.
cat > secrets/toolgate.new <<END
TOOLGATE_STORE__URL=postgresql://toolgate_app:$app@postgres:5432/toolgate
TOOLGATE_CACHE__URL=redis://:$valkey@valkey:6379/0
SPICEDB_KEY=$key
END
mv secrets/toolgate.new secrets/toolgate.env
echo "deploy/secrets: made."
