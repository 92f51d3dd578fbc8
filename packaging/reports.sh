#!/bin/sh
# reports.sh - the measurements that the model card quotes, taken on this machine.
#
#   packaging/reports.sh [BUILD_DIR]        (build): writes BUILD_DIR/reports/*.json
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$top/build}
mkdir -p "$build/reports"
"$build/bin/superpoint" validate --weights "$top/weights/superpoint.safetensors" \
    --image "$top/sample_data/bridge.jpg" --json >"$build/reports/validate.json"
"$build/bin/superpoint" bench --weights "$top/weights/superpoint.safetensors" \
    --image "$top/sample_data/bridge.jpg" --quick --json >"$build/reports/bench-all.json"
# The card names one line of each kind: the fastest forward pass, and each other stage.
python3 - "$build/reports" <<'EOF'
import json, sys
where = sys.argv[1]
doc = json.load(open(where + "/bench-all.json"))
out = {"machine": doc["machine"]}
for row in doc["results"]:
    name = row["name"]
    if name not in out or row["median_ms"] < out[name]["median_ms"]:
        out[name] = row
json.dump(out, open(where + "/bench.json", "w"), indent=2)
EOF
