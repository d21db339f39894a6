package redislimiter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/outlay-go/outlay/throttle"
)

// safe is a key as it appears in Redis: plain short names as they are, all others by
// their hash, so that no byte of theirs can change the slot of a key, and no phone number
// is to be read there.
func (l *Limiter) safe(key string) string {
	plain := len(key) <= 100 && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") == ""
	if plain {
		return key
	}
	mac := hmac.New(sha256.New, l.hashKey)
	_, _ = mac.Write([]byte(key))
	return "#" + hex.EncodeToString(mac.Sum(nil)[:16])
}

// scopeKey is the key of a scope. The hash tag is the first leg, so that all keys of one
// decision are in one slot of a cluster, and providers spread over it.
func (l *Limiter) scopeKey(first, key string) string {
	return l.prefix + ":{" + l.safe(first) + "}:scope:" + l.safe(key)
}

// windowKey is the key of a strict rate's turns.
func (l *Limiter) windowKey(first, key, rate string) string {
	return l.prefix + ":{" + l.safe(first) + "}:window:" + l.safe(key) + ":" + rate
}

// appendSet names the scopes that are asked for together, and their weights.
func appendSet(b []byte, legs []throttle.Leg) []byte {
	if len(legs) == 1 && legs[0].Weight <= 1 {
		return append(b, legs[0].Key...)
	}
	for i := range legs {
		b = append(append(b, legs[i].Key...), 0)
		b = append(strconv.AppendInt(b, int64(max(1, legs[i].Weight)), 10), 0)
	}
	return b
}

// burst is the size of a rate's token bucket, or 0 where a strict window alone limits.
func burst(r throttle.Rate) int {
	if r.Strict {
		return r.Burst
	}
	return max(1, r.Burst)
}

// magic begins every description of legs: head.lua knows it.
const magic = "outlay-1"

// describe writes legs down for a script, for each the weight, what more says, and the
// rates; and names the keys of the scopes and of the windows of their strict rates.
func (l *Limiter) describe(first string, legs []throttle.Leg, more func(i int) int64) (keys []string, text string) {
	b := append([]byte(magic), ' ')
	b = strconv.AppendInt(b, int64(len(legs)), 10)
	for i := range legs {
		leg := &legs[i]
		keys = append(keys, l.scopeKey(first, leg.Key))
		if more == nil {
			b = appendWord(b, int64(max(1, leg.Weight)))
		} else {
			b = appendWord(appendWord(b, int64(leg.Weight)), more(i))
		}
		b = appendWord(b, int64(len(leg.Rates)))
		for j, r := range leg.Rates {
			id := rateID(leg.Rates, j)
			b = appendWord(appendWord(appendWord(b, int64(r.N)), max(1, r.Per.Microseconds())), int64(burst(r)))
			b = append(appendWord(b, flag(r.Strict)), ' ')
			b = append(b, id...)
			if r.Strict {
				keys = append(keys, l.windowKey(first, leg.Key, id))
			}
		}
	}
	return keys, string(b)
}

func appendWord(b []byte, n int64) []byte { return strconv.AppendInt(append(b, ' '), n, 10) }

// rateID names a rate of a leg. A rate whose period and kind stay keeps its state when
// its numbers change.
func rateID(rates []throttle.Rate, i int) string {
	r := rates[i]
	id := strconv.FormatInt(r.Per.Microseconds(), 10)
	if r.Strict {
		id = "s" + id
	}
	for j := range i {
		if rates[j].Per == r.Per && rates[j].Strict == r.Strict {
			id += "+"
		}
	}
	return id
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
