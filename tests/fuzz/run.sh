#!/bin/sh
# sh tests/fuzz/run.sh TARGET SECONDS KEPT [OPTION...]: libFuzzer on one target, from the repository's
# corpus. What is new goes into the folder KEPT. Crashes, hangs, leaks and reports of sanitizers fail,
# and leave the input in build/fuzz/found.
set -eu
cd "$(dirname "$0")/../.."
target=$1 seconds=$2 kept=$3
shift 3
tree=build/fuzz
dictionary=tests/fuzz/$target.dict
[ -f "$dictionary" ] || dictionary=$tree/document.dict
mkdir -p build/fuzz/found "$kept"
"$tree/servecast_fuzz_$target" -max_total_time="$seconds" -timeout=10 -max_len=4096 \
  -rss_limit_mb=2048 -malloc_limit_mb=1024 -dict="$dictionary" -print_final_stats=1 \
  -artifact_prefix="build/fuzz/found/$target-" "$kept" "tests/fuzz/corpus/$target" "$@" || {
  echo "again, with that input alone: $tree/servecast_fuzz_$target FILE"
  exit 1
}
