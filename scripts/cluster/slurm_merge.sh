#!/usr/bin/env bash
# Joins the parts of slurm_array.sh into the file of one run:
#   sbatch --dependency=afterok:ARRAY_JOB --export=ALL,OUT=/results slurm_merge.sh
#SBATCH --job-name=fp8kv-merge
#SBATCH --ntasks=1
#SBATCH --time=00:10:00
set -euo pipefail
exec fp8kv merge "$OUT"/part-*.json -o "$OUT/scales.json"
