package dialect

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// headers makes a header from pairs.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestRetryAfter(t *testing.T) {
	const none = -1
	for value, want := range map[string]time.Duration{
		"0": 0, "1": time.Second, "  7 \t": 7 * time.Second, "120": 2 * time.Minute,
		"299.997": 299997 * time.Millisecond, "0.503": 503 * time.Millisecond, "2.0": 2 * time.Second, ".5": 500 * time.Millisecond,
		"0.0000000001": 1, "1.0000000001": time.Second + 1,
		"5, 10": 10 * time.Second, "10,5": 10 * time.Second, "-5, 10": 10 * time.Second, "120, 120": 2 * time.Minute,
		"Thu, 15 Jan 2026 12:00:30 GMT":                                30 * time.Second,
		"Thursday, 15-Jan-26 12:00:30 GMT":                             30 * time.Second,
		"Thu Jan 15 12:00:30 2026":                                     30 * time.Second,
		"Thu, 15 Jan 2026 12:00:30 UTC":                                30 * time.Second,
		"Thu, 15 Jan 2026 12:00:30 +0000":                              30 * time.Second,
		"Thu, 15 Jan 2026 13:00:30 +0100":                              30 * time.Second,
		"Thu, 15 Jan 2026 12:00:30 gmt":                                30 * time.Second,
		"Mon, 15 Jan 2026 12:00:30 GMT":                                30 * time.Second, // a wrong weekday
		"Sun, 1 Feb 2026 12:00:00 GMT":                                 17 * 24 * time.Hour,
		"Sun Feb  1 12:00:00 2026":                                     17 * 24 * time.Hour,
		"5, Thu, 15 Jan 2026 12:00:30 GMT":                             30 * time.Second,
		"Thu, 15 Jan 2026 12:00:30 GMT, 40":                            40 * time.Second,
		"Thu, 15 Jan 2026 12:00:30 GMT, Thu, 15 Jan 2026 12:00:50 GMT": 50 * time.Second,
		"Thu, 15 Jan 2026 11:59:00 GMT":                                0,
		"Sunday, 06-Nov-94 08:49:37 GMT":                               0,
		"2026-01-15T12:00:30Z":                                         30 * time.Second,
		"1768478430":                                                   30 * time.Second, // epochs
		"1768478430.25":                                                30*time.Second + 250*time.Millisecond,
		"1768478430000":                                                30 * time.Second,
		"1768478398":                                                   0,
		"34560000":                                                     longest, // 400 days
		"34560001":                                                     none,
		"2147483647":                                                   none, // an instant of 2038
		"2147483648":                                                   longest,
		"9223372036":                                                   longest,
		"9223372037":                                                   longest,
		"18446744074":                                                  longest,
		"99999999999":                                                  longest,
		"99999999999999999999":                                         longest,
		"Wed, 21 Oct 2099 07:28:00 GMT":                                none,
		"Tuesday, 15-Jan-75 12:00:00 GMT":                              none,
		"Thu, 15 Jan 2026 12:00:30 PST":                                none, // nobody knows which offset
		"Thu, 32 Jan 2026 12:00:30 GMT":                                none,
		"-1":                                                           none, "-5": none, "-0": none, "NaN": none, "inf": none, "-inf": none, "1e300": none, "1e3": none, "1_000": none,
		"0x10": none, "+5": none, "5 s": none, "5s": none, "": none, "soon": none, `"120"`: none, "1.": none, ".": none, "1.5.2": none,
		",": none, "Fri": none, "Jan": none, "٣": none,
	} {
		t.Run(value, func(t *testing.T) {
			r := Standard{}.Read(Answer{Status: 429, Header: headers("Retry-After", value), Now: noon})
			require.True(t, r.Throttled)
			got := time.Duration(none)
			if r.Hinted {
				got = r.RetryAfter
			}
			require.Equal(t, want, got)
		})
	}
}

func TestRetryAfterOfSeveralHeaders(t *testing.T) {
	for name, row := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"largest of two lines":              {headers("Retry-After", "120", "Retry-After", "60"), 2 * time.Minute},
		"milliseconds first":                {headers("Retry-After-Ms", "7200", "Retry-After", "8"), 7200 * time.Millisecond},
		"Azure's name":                      {headers("X-Ms-Retry-After-Ms", "7850", "Retry-After", "8"), 7850 * time.Millisecond},
		"two that contradict each other":    {headers("Retry-After-Ms", "1", "Retry-After", "60"), time.Minute},
		"broken milliseconds fall through":  {headers("Retry-After-Ms", "NaN", "Retry-After", "3"), 3 * time.Second},
		"negative milliseconds":             {headers("Retry-After-Ms", "-1", "Retry-After", "3"), 3 * time.Second},
		"zero milliseconds fall through":    {headers("Retry-After-Ms", "0", "Retry-After", "3"), 3 * time.Second},
		"overflowing milliseconds saturate": {headers("Retry-After-Ms", "99999999999999999999"), longest},
		"by the server's clock":             {headers("Date", "Thu, 15 Jan 2026 11:58:30 GMT", "Retry-After", "Thu, 15 Jan 2026 11:59:30 GMT"), time.Minute},
		"a stale Date of a cache":           {headers("Age", "600", "Date", "Thu, 15 Jan 2026 11:50:00 GMT", "Retry-After", "Thu, 15 Jan 2026 12:00:10 GMT"), 10 * time.Second},
		"an absurd Date":                    {headers("Date", "Thu, 01 Jan 1970 00:00:00 GMT", "Retry-After", "Thu, 15 Jan 2026 12:00:10 GMT"), 10 * time.Second},
		"a Date that is none":               {headers("Date", "today", "Retry-After", "Thu, 15 Jan 2026 12:00:10 GMT"), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := Standard{}.Read(Answer{Status: 429, Header: row.header, Now: noon})
			require.True(t, r.Hinted)
			require.Equal(t, row.want, r.RetryAfter)
		})
	}
}

func TestClockOfTheClientMayBeYearsWrong(t *testing.T) {
	h := headers("Date", "Thu, 15 Jan 2026 12:00:00 GMT", "Retry-After", "Thu, 15 Jan 2026 12:01:00 GMT", "X-RateLimit-Reset", "1768478460")
	r := Standard{}.Read(Answer{Status: 429, Header: h, Now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Equal(t, time.Minute, r.RetryAfter)
	require.Equal(t, time.Minute, r.Window.Reset)
}

func TestStatus(t *testing.T) {
	for name, row := range map[string]struct {
		status                  int
		header                  http.Header
		throttled, wall, hinted bool
	}{
		"429":                            {429, headers(), true, false, false},
		"503 alone is a fault":           {503, headers(), false, false, false},
		"503 with a wait":                {503, headers("Retry-After", "2"), true, false, true},
		"503 with zero":                  {503, headers("Retry-After", "0"), false, false, true},
		"503 with garbage":               {503, headers("Retry-After", "-1"), false, false, false},
		"502 with a wait":                {502, headers("Retry-After", "2"), false, false, true},
		"402":                            {402, headers(), false, true, false},
		"403":                            {403, headers(), false, false, false},
		"200 with Retry-After":           {200, headers("Retry-After", "5"), false, false, false},
		"202 with Retry-After":           {202, headers("Retry-After", "5"), false, false, false},
		"301 with Retry-After":           {301, headers("Retry-After", "5"), false, false, false},
		"529 means something only there": {529, headers(), false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := Standard{}.Read(Answer{Status: row.status, Header: row.header, Now: noon})
			require.Equal(t, row.throttled, r.Throttled)
			require.Equal(t, row.wall, r.Wall)
			require.Equal(t, row.hinted, r.Hinted)
		})
	}
}

// counts is a window in short; -1 is unknown.
type counts struct {
	limit, remaining int64
	reset            time.Duration
}

func countsOf(w Window) counts {
	c := counts{-1, -1, -1}
	if w.Known&HasLimit != 0 {
		c.limit = w.Limit
	}
	if w.Known&HasRemaining != 0 {
		c.remaining = w.Remaining
	}
	if w.Known&HasReset != 0 {
		c.reset = w.Reset
	}
	return c
}

func TestWindow(t *testing.T) {
	trio := func(reset string) http.Header {
		return headers("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", reset)
	}
	for name, row := range map[string]struct {
		form   Form
		header http.Header
		want   counts
	}{
		"delta":                    {Auto, trio("30"), counts{60, 3, 30 * time.Second}},
		"epoch":                    {Auto, trio("1768478430"), counts{60, 3, 30 * time.Second}},
		"epoch ms":                 {Auto, trio("1768478430000"), counts{60, 3, 30 * time.Second}},
		"epoch us":                 {Auto, trio("1768478430000000"), counts{60, 3, 30 * time.Second}},
		"epoch ns":                 {Auto, trio("1768478430000000000"), counts{60, 3, 30 * time.Second}},
		"epoch with fraction":      {Auto, trio("1768478430.5"), counts{60, 3, 30500 * time.Millisecond}},
		"epoch past":               {Auto, trio("1768478398"), counts{60, 3, 0}},
		"epoch beyond 400 days":    {Auto, trio("1868478398"), counts{60, 3, -1}},
		"RFC 3339":                 {Auto, trio("2026-01-15T12:00:20Z"), counts{60, 3, 20 * time.Second}},
		"RFC 3339 with zone":       {Auto, trio("2026-01-15T14:00:20+02:00"), counts{60, 3, 20 * time.Second}},
		"RFC 3339 with fraction":   {Auto, trio("2026-01-15T12:00:20.250Z"), counts{60, 3, 20250 * time.Millisecond}},
		"ISO 8601 without seconds": {Auto, trio("2026-01-15T12:05Z"), counts{60, 3, 5 * time.Minute}},
		"ISO 8601, zone no colon":  {Auto, trio("2026-01-15T12:00:20.000+0000"), counts{60, 3, 20 * time.Second}},
		"JavaScript date":          {Auto, trio("Thu Jan 15 2026 13:00:20 GMT+0100 (Central European Standard Time)"), counts{60, 3, 20 * time.Second}},
		"HTTP-date":                {Auto, trio("Thu, 15 Jan 2026 12:00:20 GMT"), counts{60, 3, 20 * time.Second}},
		"duration":                 {Auto, trio("6m0s"), counts{60, 3, 6 * time.Minute}},
		"duration below a second":  {Auto, trio("12ms"), counts{60, 3, 12 * time.Millisecond}},
		"duration overflow":        {Auto, trio("9999999999999h"), counts{60, 3, -1}},
		"negative":                 {Auto, trio("-30"), counts{60, 3, -1}},
		"beyond int64":             {Auto, trio("99999999999999999999999"), counts{60, 3, -1}},
		"declared delta":           {DeltaSeconds, trio("1768478430"), counts{60, 3, -1}},
		"declared ms":              {DeltaMillis, trio("600000"), counts{60, 3, 10 * time.Minute}},
		"declared epoch":           {EpochSeconds, trio("1768478430"), counts{60, 3, 30 * time.Second}},
		"declared epoch ms":        {EpochMillis, trio("1768478430000"), counts{60, 3, 30 * time.Second}},
		"declared epoch past":      {EpochSeconds, trio("30"), counts{60, 3, 0}},
		"reset after":              {Auto, headers("X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "3"), counts{-1, 0, 3 * time.Second}},
		"reset before after":       {Auto, headers("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1768478430", "X-RateLimit-Reset-After", "30.5"), counts{-1, 0, 30 * time.Second}},
		"other names":              {Auto, headers("X-Rate-Limit-Limit", "7", "X-Rate-Limit-Remaining", "6", "X-Rate-Limit-Reset", "1"), counts{7, 6, time.Second}},
		"third names":              {Auto, headers("ratelimit-limit", "7", "ratelimit-remaining", "6", "ratelimit-reset", "1"), counts{7, 6, time.Second}},
		"remaining with fraction":  {Auto, headers("X-RateLimit-Remaining", "599.9"), counts{-1, 599, -1}},
		"sentinels":                {Auto, headers("X-RateLimit-Limit", "-1", "X-RateLimit-Remaining", "-1"), counts{-1, -1, -1}},
		"list of windows":          {Auto, headers("X-RateLimit-Limit", "20, 20;w=60", "X-RateLimit-Remaining", "19"), counts{20, 19, -1}},
		"same limit under 2 names": {Auto, headers("X-RateLimit-Limit", "9", "X-RateLimit-Remaining", "8", "RateLimit-Limit", "9", "RateLimit-Remaining", "8"), counts{9, 8, -1}},
		"cached":                   {Auto, headers("Age", "30", "X-RateLimit-Remaining", "0"), counts{-1, -1, -1}},
		"fresh from a cache":       {Auto, headers("Age", "0", "X-RateLimit-Remaining", "0"), counts{-1, 0, -1}},
		"server's clock":           {Auto, headers("Date", "Thu, 15 Jan 2026 11:50:00 GMT", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1768477830"), counts{-1, 0, 30 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Standard{Reset: row.form}.Read(Answer{Status: 200, Header: row.header, Now: noon})
			require.Equal(t, row.want, countsOf(r.Window))
			require.Nil(t, r.Windows)
			require.False(t, r.Throttled)
		})
	}
}

func TestResetAloneSpeaksOnlyBesideARefusal(t *testing.T) {
	h := headers("X-RateLimit-Reset", "30")
	require.Equal(t, 30*time.Second, Standard{}.Read(Answer{Status: 429, Header: h, Now: noon}).Window.Reset)
	require.Zero(t, Standard{}.Read(Answer{Status: 200, Header: h, Now: noon}).Window)
}

func TestEpochIsGuessedAroundNow(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, value := range []string{"946684830", "946684830000", "946684830000000", "946684830000000000"} {
		r := Standard{}.Read(Answer{Status: 429, Header: headers("X-RateLimit-Reset", value), Now: start})
		require.Equal(t, counts{-1, -1, 30 * time.Second}, countsOf(r.Window), value)
	}
}

func TestRejectedCredentialsTellNothingAboutLimits(t *testing.T) {
	h := headers("X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3600")
	for status, known := range map[int]bool{200: true, 401: false, 403: false, 404: true, 429: true} {
		r := Standard{}.Read(Answer{Status: status, Header: h, Now: noon})
		require.Equal(t, known, r.Window.Known != 0, status)
	}
}

func TestExhaustedLimitBinds(t *testing.T) {
	r := Standard{}.Read(Answer{Status: 429, Now: noon, Header: headers(
		"RateLimit", `"day";r=40;t=36000, "minute";r=0;t=20, "second";r=0;t=1`,
		"RateLimit-Policy", `"second";q=5;w=1, "day";q=50;w=86400, "minute";q=10;w=60`)})
	require.Len(t, r.Windows, 3)
	require.Equal(t, Window{Name: "minute", Limit: 10, Reset: 20 * time.Second, Known: HasLimit | HasRemaining | HasReset}, r.Window)
	require.Equal(t, "minute", r.Policy)
}
