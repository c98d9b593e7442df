#!/bin/bash
# Runs one sweep by every way of tools/shards that one machine has, kills a shard of each, runs it again, and compares
# the bytes with those of one process. As root, on Debian with parallel, snakemake, slurm-wlm and munge; for the nightly
# checks. Kubernetes is not run: its manifest is only read.
set -euo pipefail
cd "$(dirname "$0")/../.."
export SERVECAST=${SERVECAST:-$PWD/build/release/servecast}
points=${1:-400}
work=$(mktemp -d)
trap 'status=$?; pkill -f "slurm(ctld|d) .*$work" || true; rm -rf "$work"; exit $status' EXIT

scenario=$work/scenario.json
cat >"$scenario" <<EOF
{"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
 "workload": {"arrivals": {"process": "poisson", "rate_per_s": 1}, "prompt_tokens": {"distribution": "fixed", "value": 400},
              "output_tokens": {"distribution": "fixed", "value": 100}, "requests": 500},
 "slo": [{"metric": "ttft", "percentile": 99, "limit_ms": 500}]}
EOF
rates=$(seq -s, 1 "$((points / 4))")
over=("workload.arrivals.rate_per_s=$rates" "engine.max_num_seqs=32,64,128,256")
sweep=("$scenario" --over "${over[0]}" --over "${over[1]}")

begin=$(date +%s.%N)
"$SERVECAST" sweep "${sweep[@]}" --threads 1 >"$work/one.jsonl"
echo "one process: $(wc -l <"$work/one.jsonl") points, $(echo "$(date +%s.%N) - $begin" | bc) s"

# merged NAME FOLDER: the shards of a folder are the bytes of one process.
merged() {
  "$SERVECAST" merge "$2"/*.jsonl | cmp - "$work/one.jsonl"
  echo "$1: the same bytes"
}
# lose FOLDER: one shard is gone, another one ended in the middle of a line, as no way leaves it.
lose() {
  rm "$1/3.jsonl"
  ! "$SERVECAST" merge "$1"/*.jsonl >/dev/null 2>&1
}

parallel_ones() { seq 8 | parallel --will-cite -j 2 sh tools/shards/shard.sh {} 8 "$work/parallel" "${sweep[@]}"; }
parallel_ones & # killed in its middle
sleep 0.3
kill -TERM $! && wait $! 2>/dev/null || true
pkill -f "$work/parallel" || true
parallel_ones
lose "$work/parallel"
parallel_ones
merged parallel "$work/parallel"

(cd "$work" && snakemake -q -s "$OLDPWD/tools/shards/Snakefile" --cores 2 --config scenario="$scenario" \
  over="${over[*]}" shards=8 && rm shards/3.jsonl sweep.jsonl && snakemake -q -s "$OLDPWD/tools/shards/Snakefile" \
  --cores 2 --config scenario="$scenario" over="${over[*]}" shards=8)
cmp "$work/sweep.jsonl" "$work/one.jsonl"
echo "snakemake: the same bytes"

# A cluster of this host alone.
host=$(hostname -s)
[ -e /etc/munge/munge.key ] || mungekey --create
mkdir -p /run/munge "$work/state" "$work/spool"
chown munge: /run/munge /etc/munge/munge.key
pgrep -x munged >/dev/null || runuser -u munge -- munged
cat >"$work/slurm.conf" <<EOF
ClusterName=check
SlurmctldHost=$host
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$host CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
EOF
export SLURM_CONF=$work/slurm.conf
slurmctld -f "$SLURM_CONF" -L "$work/slurmctld.log"
slurmd -f "$SLURM_CONF" -L "$work/slurmd.log"
until sinfo -h -o %T 2>/dev/null | grep -q idle; do sleep 0.5; done
slurm_ones() { sbatch --parsable --array=1-8 --output="$work/slurm-%a.log" "$@" tools/shards/slurm.sbatch "$work/slurm" "${sweep[@]}"; }
job=$(slurm_ones)
sleep 1
scancel "${job}_2" "${job}_8" # lost
slurm_ones --wait >/dev/null
lose "$work/slurm"
slurm_ones --wait >/dev/null
merged slurm "$work/slurm"
