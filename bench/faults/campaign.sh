#!/usr/bin/env bash
# Jobs over three machines in namespaces, hurt again and again (docs/lab.md). Exit code 0 only if all recovered; the last line is the sum.
#     bench/faults/campaign.sh [--cycles N | --long] [--seed S] [--brief] [--only TEXT] [--out RESULT.md]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
source "$root/bench/support/provenance.sh"
release_troupe
need_program "$build/bench/faults/fault_campaign" fault_campaign
exec "$build/bench/faults/fault_campaign" "$@"
