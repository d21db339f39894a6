#!/bin/sh
# curl through the gateway: the guide for PHP, Ruby and whatever else has no SDK here. A
# refusal is an ordinary answer to curl: --fail-with-body makes the exit status say it.
#
#   GATEWAY=http://127.0.0.1:8787/twilio sh curl.sh [how many messages]
gateway=${GATEWAY:-http://127.0.0.1:8787/twilio}
n=1
while [ "$n" -le "${1:-1}" ]; do
	body=$(curl -sS --fail-with-body --noproxy '*' -u "AC1:${OUTLAY_TOKEN:-none}" "$gateway/2010-04-01/Accounts/AC1/Messages.json" \
		--data-urlencode 'To=+12025550123' --data-urlencode 'From=+12025550100' --data-urlencode "Body=Message $RUN$n" 2>/dev/null)
	if code=$? && [ "$code" = 0 ]; then
		echo '{"ok":true,"value":"sent"}'
	else
		echo "{\"ok\":false,\"error\":\"exit status $code\",\"status\":null,\"code\":$code,\"message\":\"$(echo "$body" | cut -c1-60 | tr -d '"\\{}')\"}"
	fi
	n=$((n + 1))
done
