package dialect

import (
	"testing"
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
