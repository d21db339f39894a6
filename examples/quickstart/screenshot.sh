#!/usr/bin/env bash
# Makes statuspage.png, the picture of the status page in the README, while the quick
# start runs. It needs Go and chromium.
set -euo pipefail
cd "$(dirname "$0")"
tmp=$(mktemp -d)
go build -o "$tmp/quickstart" .
"$tmp/quickstart" -hold >"$tmp/out" 2>&1 &
trap 'kill -INT $! 2>/dev/null || true; wait || true; rm -rf "$tmp"' EXIT

until page=$(grep -o 'http://[^ ]*/' "$tmp/out" | head -1) && [ -n "$page" ]; do sleep 0.1; done
sleep "${WAIT:-9}" # most of the messages are sent by then

as_root=; [ "$(id -u)" != 0 ] || as_root=--no-sandbox
chromium --headless $as_root --disable-gpu --hide-scrollbars --user-data-dir="$tmp/profile" \
	--window-size="${SIZE:-1120,900}" --screenshot="$PWD/statuspage.png" "${page}?refresh=0" 2>"$tmp/chromium" || { cat "$tmp/chromium" >&2; exit 1; }

size=$(wc -c <statuspage.png)
echo "statuspage.png: $((size / 1024)) KiB"
[ "$size" -lt $((150 * 1024)) ] || { echo "more than 150 KiB" >&2; exit 1; }
