package peerbench

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/outlay-go/outlay/transport/dialect"
)

// answer is what a vendor sends, with the headers of each case added.
func answer(status int, pairs ...string) dialect.Answer {
	h := http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"512"}, "Date": {"Thu, 15 Jan 2026 12:00:00 GMT"},
		"Server": {"nginx"}, "Cache-Control": {"no-store"}, "X-Request-Id": {"0c2b61c5"}, "Vary": {"Accept-Encoding"},
	}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return dialect.Answer{Status: status, Header: h, Now: time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)}
}

// BenchmarkHeaders reads what answers say about limits. outlay looks for every form that
// it knows each time; beside it stands the least code for the one form of the case: three
// headers by hand, http.ParseTime, a parser of structured fields.
func BenchmarkHeaders(b *testing.B) {
	nothing := answer(200)
	trio := answer(200, "X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Reset", "1768478460")
	fields := answer(200, "RateLimit", `"default";r=50;t=30`, "RateLimit-Policy", `"default";q=100;w=60`)
	date := answer(429, "Retry-After", "Thu, 15 Jan 2026 12:00:30 GMT")
	reads := func(a dialect.Answer, remaining int64) func() bool {
		return func() bool { return dialect.Standard{}.Read(a).Window.Remaining == remaining }
	}
	for _, c := range []struct {
		name string
		read func() bool
	}{
		{"nothing/outlay", reads(nothing, 0)},
		{"trio/outlay", reads(trio, 4999)},
		{"trio/by_hand", func() bool { return byHand(trio.Header) == 4999 }},
		{"RateLimit/outlay", reads(fields, 50)},
		{"RateLimit/httpsfv", func() bool { return structured(fields.Header) == 50 }},
		{"date/outlay", func() bool { return dialect.Standard{}.Read(date).RetryAfter == 30*time.Second }},
		{"date/ParseTime", func() bool {
			at, err := http.ParseTime(date.Header.Get("Retry-After"))
			return err == nil && at.Sub(date.Now) == 30*time.Second
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			measure(b, func() {
				if !c.read() {
					b.Fatal("not read")
				}
			})
		})
	}
}

// byHand is what programs write: the names as the vendor's documentation spells them.
func byHand(h http.Header) int {
	limit, err1 := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	remaining, err2 := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	reset, err3 := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || remaining > limit || time.Unix(reset, 0).IsZero() {
		return -1
	}
	return remaining
}

// structured reads both fields into their values.
func structured(h http.Header) int64 {
	limit, err1 := httpsfv.UnmarshalList(h.Values("RateLimit"))
	policy, err2 := httpsfv.UnmarshalList(h.Values("RateLimit-Policy"))
	if err1 != nil || err2 != nil {
		return -1
	}
	remaining, ok := param(limit, "r")
	_, ok1 := param(limit, "t")
	_, ok2 := param(policy, "q")
	_, ok3 := param(policy, "w")
	if !ok || !ok1 || !ok2 || !ok3 {
		return -1
	}
	return remaining
}

func param(l httpsfv.List, name string) (int64, bool) {
	item, ok := l[0].(httpsfv.Item)
	if !ok {
		return 0, false
	}
	v, _ := item.Params.Get(name)
	n, ok := v.(int64)
	return n, ok
}
