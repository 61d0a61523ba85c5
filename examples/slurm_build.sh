#!/usr/bin/env bash
# Builds one shard of a plan in each task of an array job. docs/how-to/distributed.md is the guide.
#
#   sbatch --array=0-63 examples/slurm_build.sh train.plan train.packs
#
#SBATCH --job-name=packds-build
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --requeue
set -euo pipefail
plan=$1 set=$2

# A shard that is there and intact is kept, so the array can be submitted again.
exec packds build "$plan" --shard "$SLURM_ARRAY_TASK_ID" -o "$set" --jobs "${SLURM_CPUS_PER_TASK:-1}" --quiet
