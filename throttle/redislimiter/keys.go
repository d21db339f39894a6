package redislimiter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/outlay-go/outlay/throttle"
)

// safe is a key as it appears in Redis: plain short names as they are, all others by
// their hash, so that no byte of theirs can change the slot of a key.
func safe(key string) string {
	plain := len(key) <= 100 && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") == ""
	if plain {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:16])
}

// scopeKey is the key of a scope. The hash tag is the first leg, so that all keys of one
// decision are in one slot of a cluster, and providers spread over it.
func (l *Limiter) scopeKey(first, key string) string {
	return l.prefix + ":{" + safe(first) + "}:scope:" + safe(key)
}

// windowKey is the key of a strict rate's turns.
func (l *Limiter) windowKey(first, key, rate string) string {
	return l.prefix + ":{" + safe(first) + "}:window:" + safe(key) + ":" + rate
}

// setOf names the scopes that are asked for together, and their weights.
func setOf(legs []throttle.Leg) string {
	if len(legs) == 1 && legs[0].Weight <= 1 {
		return legs[0].Key
	}
	var b strings.Builder
	for i := range legs {
		fmt.Fprintf(&b, "%s\x00%d\x00", legs[i].Key, max(1, legs[i].Weight))
	}
	return b.String()
}

// burst is the size of a rate's token bucket, or 0 where a strict window alone limits.
func burst(r throttle.Rate) int {
	if r.Strict {
		return r.Burst
	}
	return max(1, r.Burst)
}

// rateArgs describes rates to a script, and names the keys of their windows. A rate
// whose period and kind stay keeps its state when its numbers change.
func (l *Limiter) rateArgs(first, key string, rates []throttle.Rate, args []any, keys []string) ([]any, []string) {
	args = append(args, len(rates))
	for i, r := range rates {
		id := strconv.FormatInt(r.Per.Microseconds(), 10)
		if r.Strict {
			id = "s" + id
		}
		for j := range i {
			if rates[j].Per == r.Per && rates[j].Strict == r.Strict {
				id += "+"
			}
		}
		args = append(args, r.N, max(1, r.Per.Microseconds()), burst(r), flag(r.Strict), id)
		if r.Strict {
			keys = append(keys, l.windowKey(first, key, id))
		}
	}
	return args, keys
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
