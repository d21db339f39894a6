package dialect

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireSane asserts what holds for every Reading.
func requireSane(t *testing.T, r Reading) {
	t.Helper()
	require.GreaterOrEqual(t, r.RetryAfter, time.Duration(0))
	require.LessOrEqual(t, r.RetryAfter, longest)
	require.True(t, r.Hinted || r.RetryAfter == 0)
	for _, w := range append([]Window{r.Window}, r.Windows...) {
		require.GreaterOrEqual(t, w.Reset, time.Duration(0))
		require.LessOrEqual(t, w.Reset, longest)
		require.GreaterOrEqual(t, w.Limit, int64(0))
		require.GreaterOrEqual(t, w.Remaining, int64(0))
		require.Equal(t, word(w.Name), w.Name)
	}
	require.LessOrEqual(t, len(r.Windows), maxWindows)
	require.NotEqual(t, 1, len(r.Windows))
	require.LessOrEqual(t, len(r.Policy), 128)
	require.LessOrEqual(t, len(r.Ref), 128)
}

func FuzzHeaders(f *testing.F) {
	f.Add(429, "30", "100", "0", "1768478430", `"a";r=0;t=5`, `"a";q=5;w=60`, "Thu, 15 Jan 2026 12:00:00 GMT")
	f.Add(429, "9223372037", "20, 20;w=60", "599.0", "2026-03-02T10:15Z", `limit=5, remaining=0, reset=9`, "100;w=10", "")
	f.Add(503, "Thursday, 15-Jan-75 12:00:30 GMT, 5", "-1", "-1", "6m0s", `"a\";r=1`, `x;q`, "x")
	f.Add(503, "Thu Jan 15 12:00:30 2026", "", "99999999999999999999", "1768478430000000000", `"a";r=1,`, `;`, "Thu, 01 Jan 1970 00:00:00 GMT")
	f.Add(429, "31 Feb 2026 25:61:61 GMT+9999 (", ",", ";", "9999999999999h", "=", "=,=", "Fri, 31 Dec 9999 23:59:60 GMT")
	f.Fuzz(func(t *testing.T, status int, retry, limit, remaining, reset, fields, policy, date string) {
		h := http.Header{"Retry-After": {retry}, "Retry-After-Ms": {reset}, "X-Ratelimit-Limit": {limit}, "X-Ratelimit-Remaining": {remaining},
			"X-Ratelimit-Reset": {reset}, "Ratelimit": {fields, reset}, "Ratelimit-Policy": {policy}, "Date": {date}}
		for form := Auto; form <= EpochMillis; form++ {
			a := Answer{Status: status, Header: h, Now: noon}
			r := Standard{Reset: form}.Read(a)
			requireSane(t, r)
			require.Equal(t, r, Standard{Reset: form}.Read(a), "reading is pure")
		}
	})
}

func FuzzInstant(f *testing.F) {
	for _, s := range []string{"Thu, 15 Jan 2026 12:00:30 GMT", "Thursday, 15-Jan-26 12:00:30 GMT", "Thu Jan 15 12:00:30 2026",
		"Sun Nov  6 08:49:37 1994", "Thu, 1 Jan 2026 12:00:30 +0000", "2026-01-15T12:00Z", "Tue Feb 16 2021 09:02:42 GMT+0100 (CET)", "Fri, 29 Feb 2025 00:00:00 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := parseInstant(s, noon)
		require.True(t, ok || got == 0)
		require.GreaterOrEqual(t, got, instant(0))
		want, err := http.ParseTime(s)
		if err != nil || want.Year() < 1970 || want.Year() > 2261 || len(s) > maxText {
			return
		}
		if _, err := time.Parse(time.RFC850, s); err == nil { // the standard library's century is fixed
			return
		}
		require.True(t, ok, "net/http reads it")
		require.Equal(t, want.UTC(), time.Unix(0, int64(got)).UTC())
	})
}

func FuzzLeaves(f *testing.F) {
	for _, s := range []string{`{"a":{"b":[1,"x",null,{"c":true}]}}`, `[{"error":{"code":429}}]`, `{"a.b":1,"c":"\"\\\u00e9"}`, `{"a":12`, `{"a":"x`, `<html>`, `[[[[[[[[[[[[[[{"a":"]"}]]]]]]]]]]]]]]`, `{"a":NaN}`, `{{`, `"x"`, `{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		size := 0
		for path, v := range leaves(body) {
			require.LessOrEqual(t, len(path), 2*len(body)+2)
			_ = v.text()
			size += len(v.raw)
		}
		require.LessOrEqual(t, size, len(body))
	})
}

func FuzzVendors(f *testing.F) {
	vectors, err := os.ReadFile("testdata/vendor-signals.json")
	require.NoError(f, err)
	var seeds []vector
	require.NoError(f, json.Unmarshal(vectors, &seeds))
	names := Vendors()
	for _, v := range seeds {
		if d, ok := For(v.Vendor).(*vendor); ok {
			f.Add(uint8(slices.Index(names, d.name)), v.Response.Status, []byte(v.Response.Body))
		}
	}
	f.Add(uint8(0), 200, []byte(strings.Repeat(`{"error":[`, 10000)))
	f.Fuzz(func(t *testing.T, vendor uint8, status int, body []byte) {
		d, a := For(names[int(vendor)%len(names)]), Answer{Status: status, Header: plain, Body: body, Now: noon}
		r := d.Read(a)
		requireSane(t, r)
		require.Equal(t, r, d.Read(a), "reading is pure")
		require.False(t, r.Wall && !r.Throttled && r.Hinted, "nobody waits at a wall")
	})
}
