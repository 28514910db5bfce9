#!/usr/bin/env bash
# Calibrates a model in four array tasks of Slurm (slurm_merge.sh then joins their parts):
#   sbatch --export=ALL,MODEL=/models/M,DATA=/data/text.jsonl,OUT=/results slurm_array.sh
# OUT is a folder that all nodes see. A task that is killed, preempted or out of time continues when
# it is queued again, after the last layer that it finished.
#SBATCH --job-name=fp8kv-calibrate
#SBATCH --array=0-3
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --ntasks=1
#SBATCH --time=04:00:00
set -euo pipefail
# Slurm sends SIGTERM, then SIGKILL. fp8kv leaves no half-written file after either. `exec` lets the
# signal reach it.
part=$OUT/part-$SLURM_ARRAY_TASK_ID
# Requeued tasks start this script again. If the part exists, it was finished before.
[[ ! -e $part.json ]] || exit 0
exec fp8kv calibrate "$MODEL" --data "$DATA" --samples "${SAMPLES:-512}" \
  --seq-len "${SEQ_LEN:-2048}" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --resume \
  --threads "${SLURM_CPUS_PER_TASK:-1}" -o "$part.json"
