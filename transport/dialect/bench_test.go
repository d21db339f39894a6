package dialect

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain is a good answer without any word about limits, as most are.
var plain = headers("Content-Type", "application/json", "Content-Length", "512", "Date", "Thu, 15 Jan 2026 12:00:00 GMT",
	"Server", "nginx", "Cache-Control", "no-store", "X-Request-Id", "0c2b61c5", "Vary", "Accept-Encoding", "Strict-Transport-Security", "max-age=31536000")

func with(pairs ...string) Answer {
	h := plain.Clone()
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return Answer{Status: 200, Header: h, Now: noon}
}

func benchmark(b *testing.B, d Dialect, a Answer) {
	b.ReportAllocs()
	for b.Loop() {
		d.Read(a)
	}
}

func BenchmarkStandard(b *testing.B) {
	trio := with("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Reset", "1768478460")
	throttled := with("Retry-After", "30")
	throttled.Status = 429
	b.Run("nothing", func(b *testing.B) { benchmark(b, Standard{}, with()) })
	b.Run("trio", func(b *testing.B) { benchmark(b, Standard{}, trio) })
	b.Run("trio declared", func(b *testing.B) { benchmark(b, Standard{Reset: EpochSeconds}, trio) })
	b.Run("RateLimit", func(b *testing.B) {
		benchmark(b, Standard{}, with("RateLimit", `"default";r=50;t=30`, "RateLimit-Policy", `"default";q=100;w=60`))
	})
	b.Run("RateLimit two", func(b *testing.B) {
		benchmark(b, Standard{}, with("RateLimit", `"burst";r=10;t=1, "daily";r=900;t=3600`, "RateLimit-Policy", `"burst";q=100;w=60, "daily";q=1000;w=86400`))
	})
	b.Run("Retry-After", func(b *testing.B) { benchmark(b, Standard{}, throttled) })
}

// BenchmarkRateLimitFields reads RateLimit and RateLimit-Policy alone, for comparison with
// parsers of structured fields.
func BenchmarkRateLimitFields(b *testing.B) {
	for name, a := range map[string]Answer{
		"one": with("RateLimit", `"default";r=50;t=30`, "RateLimit-Policy", `"default";q=100;w=60`),
		"two": with("RateLimit", `"burst";r=10;t=1, "daily";r=900;t=3600`, "RateLimit-Policy", `"burst";q=100;w=60, "daily";q=1000;w=86400`),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var r Reading
				r.ietf(&clock{h: a.Header, now: a.Now})
			}
		})
	}
}

// BenchmarkVendorNothing reads a good answer in which no vendor says a word.
func BenchmarkVendorNothing(b *testing.B) {
	for _, name := range Vendors() {
		b.Run(name, func(b *testing.B) { benchmark(b, For(name), with()) })
	}
}

// BenchmarkVendorTrio reads what a vendor says in every good answer.
func BenchmarkVendorTrio(b *testing.B) {
	for name, a := range map[string]Answer{
		"GitHub":   with("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Reset", "1768478460", "X-RateLimit-Resource", "core"),
		"SendGrid": with("X-RateLimit-Limit", "500", "X-RateLimit-Remaining", "499", "X-RateLimit-Reset", "1768478460"),
		"Telnyx":   with("X-RateLimit-Limit", "50", "X-RateLimit-Remaining", "49", "X-RateLimit-Reset", "1"),
		"Okta":     with("X-Rate-Limit-Limit", "1200", "X-Rate-Limit-Remaining", "1199", "X-Rate-Limit-Reset", "1768478460"),
		"Discord":  with("X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset-After", "1.5", "X-RateLimit-Bucket", "abcd1234"),
		"OpenAI": with("X-RateLimit-Limit-Requests", "60", "X-RateLimit-Remaining-Requests", "59", "X-RateLimit-Reset-Requests", "1s",
			"X-RateLimit-Limit-Tokens", "150000", "X-RateLimit-Remaining-Tokens", "149984", "X-RateLimit-Reset-Tokens", "6m0s"),
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, For(name), a) })
	}
}

// BenchmarkDirect is the least that reading a trio can cost: three look-ups and three
// numbers.
func BenchmarkDirect(b *testing.B) {
	h := with("X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Reset", "1768478460").Header
	b.ReportAllocs()
	sum := int64(0)
	for b.Loop() {
		for _, key := range [...]string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
			n, _ := strconv.ParseInt(h[key][0], 10, 64)
			sum += n
		}
	}
	_ = sum
}

// BenchmarkBody reads a whole body of the size that is peeked at.
func BenchmarkBody(b *testing.B) {
	a := Answer{Status: 200, Header: plain, Now: noon, Body: []byte(`{"results":[` + strings.Repeat(`{"formatted_address":"1 Main St","geometry":{"location":{"lat":1.5,"lng":2.5}}},`, 800) + `{}],"status":"OK"}`)}
	b.SetBytes(int64(len(a.Body)))
	benchmark(b, For("Google Maps"), a)
}

func TestReadingAllocatesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		d Dialect
		a Answer
	}{
		"nothing":   {Standard{}, with()},
		"trio":      {Standard{}, with("X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "8", "X-RateLimit-Reset", "1768478460")},
		"RateLimit": {Standard{}, with("RateLimit", `"default";r=50;t=30`, "RateLimit-Policy", `"default";q=100;w=60`)},
		"-07":       {Standard{}, with("RateLimit", `limit=5, remaining=4, reset=3`)},
		"GitHub":    {For("GitHub"), with("X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "8", "X-RateLimit-Reset", "1768478460")},
		"Discord":   {For("Discord"), with("X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "8", "X-RateLimit-Reset-After", "1.5")},
		"Stripe":    {For("Stripe"), with()},
	} {
		t.Run(name, func(t *testing.T) {
			require.Zero(t, testing.AllocsPerRun(100, func() { row.d.Read(row.a) }))
		})
	}
}
