package gateway

import (
	"slices"
	"strings"
	"time"
)

// keySynonyms are words that people write from habit, and what they are called here.
var keySynonyms = map[string]string{
	"stopped": "frozen", "disabled": "frozen", "paused": "frozen", "kill_switch": "frozen",
	"rate_limit": "rates", "rate_limits": "rates", "limits": "rates", "concurrency": "max_in_flight", "max_concurrency": "max_in_flight",
	"url": "upstream", "base_url": "upstream", "host": "upstream", "upstreams": "upstream", "target": "upstream",
	"key": "credential", "api_key": "credential", "auth_token": "credential", "credentials": "credential",
	"prices": "price", "cost": "price", "costs": "price", "pricing": "price", "cap": "budgets", "spend": "budgets",
	"prefixes": "table", "routes_table": "table", "model": "models", "period": "every", "window": "every", "per": "every", "timezone": "zone", "tz": "zone",
	"alert": "alerts", "thresholds": "alerts", "amount": "limit", "max": "limit", "retries": "retry", "timeout": "timeouts",
	"listeners": "listen", "addr": "address", "port": "address", "certificate": "cert", "clients": "callers", "users": "callers",
	"database": "ledger", "store": "ledger", "storage": "ledger", "logging": "log", "logs": "log", "grace": "shutdown", "file": "path",
	"weight": "units", "tier": "plans", "plan": "plans", "tenant": "tenants", "max_wait_time": "max_wait", "queue_timeout": "max_wait",
}

// suggestion finds the word that was meant: a synonym, or one that differs by little.
func suggestion(word string, among []string, synonyms map[string]string) string {
	low := strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	has := func(s string) bool { return slices.Contains(among, s) }
	if has(low) {
		return low
	}
	best, least := "", 1+max(1, len(low)/3)
	for _, a := range among {
		if d := distance(low, strings.ReplaceAll(a, "-", "_")); d < least {
			best, least = a, d
		}
	}
	if s := synonyms[low]; best == "" && s != "" && has(s) {
		return s
	}
	return best
}

// distance is how many letters must be inserted, dropped, changed or swapped to make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}

// zones are the abbreviations that people write for a zone, with its largest city.
var zones = map[string]string{
	"PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PT": "America/Los_Angeles", "PACIFIC": "America/Los_Angeles",
	"MST": "America/Denver", "MDT": "America/Denver", "MT": "America/Denver",
	"CST": "America/Chicago", "CDT": "America/Chicago", "CT": "America/Chicago", "CENTRAL": "America/Chicago",
	"EST": "America/New_York", "EDT": "America/New_York", "ET": "America/New_York", "EASTERN": "America/New_York",
	"GMT": "Europe/London", "BST": "Europe/London", "CET": "Europe/Berlin", "CEST": "Europe/Berlin", "EET": "Europe/Athens", "EEST": "Europe/Athens",
	"WET": "Europe/Lisbon", "MSK": "Europe/Moscow", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul", "SGT": "Asia/Singapore",
	"HKT": "Asia/Hong_Kong", "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "ACST": "Australia/Adelaide", "AWST": "Australia/Perth",
	"NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland", "SAST": "Africa/Johannesburg", "BRT": "America/Sao_Paulo", "HST": "Pacific/Honolulu", "AKST": "America/Anchorage",
	"Z": "UTC", "ZULU": "UTC",
}

// zoneHint finds the name of a zone that was meant.
func zoneHint(name string) string {
	if z := zones[strings.ToUpper(name)]; z != "" {
		return z
	}
	city := titled(name)
	for _, area := range []string{"", "Europe/", "America/", "Asia/", "Africa/", "Australia/", "Pacific/", "Atlantic/"} {
		if area == "" && !strings.Contains(city, "/") {
			continue
		}
		if z, err := time.LoadLocation(area + city); err == nil {
			return z.String()
		}
	}
	return ""
}

// titled writes a name as the names of zones are: Europe/Isle_of_Man has no rule, but the
// most have.
func titled(name string) string {
	b := []byte(strings.ToLower(strings.ReplaceAll(name, " ", "_")))
	for i, c := range b {
		if (i == 0 || b[i-1] == '/' || b[i-1] == '_') && 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
