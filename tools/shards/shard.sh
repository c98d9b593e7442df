#!/bin/sh
# shard.sh I N FOLDER SCENARIO --over ...: runs shard I of N of `servecast sweep SCENARIO --over ...` into
# FOLDER/I.jsonl. What is there is whole, and is not run again: lost shards are those that are missing.
# $SERVECAST: the command; $THREADS: of one shard (default 1).
set -eu
shard=$1 shards=$2 folder=$3
shift 3
mkdir -p "$folder"
[ ! -e "$folder/$shard.jsonl" ] || exit 0
# Of its own: a shard that was taken for lost may still be running.
part=$(mktemp "$folder/.$shard.XXXXXX")
trap 'rm -f "$part"' EXIT
trap 'exit 143' TERM INT
"${SERVECAST:-servecast}" sweep "$@" --shard "$shard/$shards" --threads "${THREADS:-1}" >"$part"
mv "$part" "$folder/$shard.jsonl"
