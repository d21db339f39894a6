package vendortest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/vendortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// forever is a window that no test sees the end of.
const forever = 1 << 62

const messages = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json"

// open closes the fake at the end of the test, and returns a client that reaches it.
func open(t *testing.T, fakes ...*vendortest.Fake) *http.Client {
	t.Helper()
	c := &http.Client{Transport: vendortest.Base(fakes...)}
	t.Cleanup(func() {
		c.CloseIdleConnections()
		for _, f := range fakes {
			f.Close()
		}
	})
	return c
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func do(t *testing.T, c *http.Client, method, url, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

func text(to, body string) string {
	return url.Values{"To": {to}, "From": {"+15550001"}, "Body": {body}}.Encode()
}

func geocode(address string) string {
	return "https://maps.googleapis.com/maps/api/geocode/json?key=k&address=" + url.QueryEscape(address)
}

func TestWindowIsEnforcedStrictly(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Requests: 7, Window: forever}})
	c := open(t, sms)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { do(t, c, http.MethodPost, messages, text(fmt.Sprint("+1", i), "hi")) })
	}
	wg.Wait()
	n := sms.Counts()
	require.Equal(t, []int{40, 7, 33, 40}, []int{n.Received, n.Accepted, n.Throttled, n.MaxInWindow})
	require.Len(t, sms.Invoice().Lines, 7)
}

func TestNextWindowIsNew(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Requests: 1, Window: 50 * time.Millisecond}})
	c := open(t, sms)
	begin := time.Now()
	for i := 0; sms.Counts().Accepted < 3; i++ {
		do(t, c, http.MethodPost, messages, text(fmt.Sprint("+1", i), "hi"))
		require.Less(t, time.Since(begin), 10*time.Second)
	}
	require.Greater(t, time.Since(begin), 50*time.Millisecond, "three windows have a whole one between them")
	require.NotZero(t, sms.Counts().Throttled)
}

func TestConcurrencyIsEnforced(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{Limit: vendortest.Limit{Concurrent: 2}, Faults: vendortest.Faults{
		Script: []vendortest.Fault{vendortest.Slow, vendortest.Slow}, SlowFor: time.Hour,
	}})
	c := open(t, sms)
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { require.Error(t, do(t, c, http.MethodPost, messages, text(fmt.Sprint("+1", i), "hi")).err) })
	}
	require.Eventually(t, func() bool { return sms.Counts().Received == 2 }, 10*time.Second, time.Millisecond)
	a := do(t, c, http.MethodPost, messages, text("+13", "hi"))
	require.Equal(t, http.StatusTooManyRequests, a.status)
	require.Equal(t, "3", a.header.Get("Twilio-Concurrent-Requests"))
	sms.Close() // cuts the two off
	wg.Wait()
	require.Equal(t, 2, sms.Counts().Accepted)
	require.Equal(t, 3, sms.Counts().MaxInFlight)
	require.Len(t, sms.Invoice().Lines, 2, "an answer that nobody waited for is billed all the same")
}

func TestFaults(t *testing.T) {
	tests := []struct {
		fault  vendortest.Fault
		status int    // of the answer; 0: none
		after  string // Retry-After
		err    error
		billed int
	}{
		{vendortest.None, 201, "", nil, 1},
		{vendortest.Throttle, 429, "", nil, 0},
		{vendortest.Throttle429Hint, 429, "2", nil, 0},
		{vendortest.Throttle429Bare, 429, "", nil, 0},
		{vendortest.Unavailable503, 503, "", nil, 0},
		{vendortest.Unavailable503Hint, 503, "2", nil, 0},
		{vendortest.Error500, 500, "", nil, 1},
		{vendortest.ResetBeforeRead, 0, "", syscall.ECONNRESET, 0},
		{vendortest.ResetAfterRead, 0, "", syscall.ECONNRESET, 1},
		{vendortest.Cut, 201, "", io.ErrUnexpectedEOF, 1},
		{vendortest.Slow, 201, "", nil, 1},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault), func(t *testing.T) {
			sms := vendortest.NewSMS(vendortest.Options{Faults: vendortest.Faults{
				Script: []vendortest.Fault{tt.fault}, RetryAfter: 1500 * time.Millisecond, SlowFor: time.Millisecond,
			}})
			a := do(t, open(t, sms), http.MethodPost, messages, text("+1", "hi"))
			require.ErrorIs(t, a.err, tt.err)
			require.Equal(t, tt.status, a.status)
			require.Equal(t, tt.after, a.header.Get("Retry-After"))
			require.Len(t, sms.Invoice().Lines, tt.billed)
			require.Equal(t, map[vendortest.Fault]int{tt.fault: 1}, sms.Counts().Faults)
		})
	}
}

func TestLostAnswerSentAgainIsADoubleSend(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{Faults: vendortest.Faults{
		Script: []vendortest.Fault{vendortest.Throttle429Bare, vendortest.ResetAfterRead},
	}})
	c := open(t, sms)
	for range 3 {
		do(t, c, http.MethodPost, messages, text("+1", "hi"))
	}
	require.Equal(t, 1, sms.Counts().Double)
	require.Len(t, sms.Invoice().Lines, 2)
}

// The outcome is a matter of the seed and of what is sent, not of the order.
func TestSeedDecides(t *testing.T) {
	run := func(seed uint64) (vendortest.Counts, []string) {
		sms := vendortest.NewSMS(vendortest.Options{Faults: vendortest.Faults{
			Seed: seed, Throttle429Hint: 100, Throttle429Bare: 100, Unavailable503: 50,
			Error500: 50, ResetBeforeRead: 50, ResetAfterRead: 100, Cut: 50,
		}})
		c := open(t, sms)
		var wg sync.WaitGroup
		for i := range rand.Perm(300) {
			wg.Go(func() {
				for range 2 {
					do(t, c, http.MethodPost, messages, text(fmt.Sprint("+1", i), strings.Repeat("x", i)))
				}
			})
		}
		wg.Wait()
		n := sms.Counts()
		n.MaxInFlight, n.Early = 0, 0 // these two are a matter of time
		var lines []string
		for _, l := range sms.Invoice().Lines {
			lines = append(lines, fmt.Sprint(l.To, l.Units, l.Amount))
		}
		slices.Sort(lines)
		return n, lines
	}
	n, lines := run(1)
	again, same := run(1)
	require.Equal(t, n, again)
	require.Equal(t, lines, same)
	for fault, share := range map[vendortest.Fault]int{vendortest.None: 300, vendortest.ResetAfterRead: 60, vendortest.Cut: 30} {
		require.InDelta(t, share, n.Faults[fault], 40, fault)
	}
	other, _ := run(2)
	require.NotEqual(t, n.Faults, other.Faults)
}

func TestInvoiceAddsUpToTheNano(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{
		Price:  8_300_001,
		Prices: map[string]budget.Amount{"+49": 95_000_000, "+4915": 100_000_007},
	})
	c := open(t, sms)
	for _, m := range []string{text("+1212", "one"), text("+4930", "zwei"), text("+49151", strings.Repeat("ü", 161))} {
		require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, messages, m).status)
	}
	inv := sms.Invoice()
	require.Equal(t, budget.Amount(8_300_001+95_000_000+2*100_000_007), inv.Total)
	var csv bytes.Buffer
	require.NoError(t, inv.WriteCSV(&csv))
	rows := strings.Split(csv.String(), "\n")
	require.Equal(t, "ref,time,to,units,amount,unit", rows[0])
	require.Contains(t, rows[3], ",+49151,2,"+fmt.Sprint(2*budget.Amount(100_000_007))+",USD")
	require.Len(t, rows, 5)
}

func TestAnnouncedPauseIsWatched(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{Faults: vendortest.Faults{
		Script: []vendortest.Fault{vendortest.Throttle429Hint}, RetryAfter: time.Hour,
	}})
	c := open(t, sms)
	begin := time.Now()
	do(t, c, http.MethodPost, messages, text("+1", "hi"))
	do(t, c, http.MethodPost, messages, text("+2", "was on its way"))
	require.Zero(t, sms.Counts().Early)
	for sms.Counts().Early == 0 {
		do(t, c, http.MethodPost, messages, text("+3", "too early"))
		require.Less(t, time.Since(begin), 10*time.Second)
	}
	require.Greater(t, time.Since(begin), 250*time.Millisecond)
}

func TestBaseReachesOnlyTheFakes(t *testing.T) {
	sms, geo := vendortest.NewSMS(vendortest.Options{}), vendortest.NewGeocoder(vendortest.Options{})
	c := open(t, sms, geo)
	require.Equal(t, 201, do(t, c, http.MethodPost, messages, text("+1", "hi")).status)
	require.Equal(t, 200, do(t, c, http.MethodGet, geocode("1600 Amphitheatre Parkway"), "").status)
	regional := strings.Replace(messages, "api.", "API.Dublin.IE1.", 1)
	require.Equal(t, 201, do(t, c, http.MethodPost, regional, text("+1", "hi")).status)
	for _, elsewhere := range []string{"https://example.com/", "http://twilio.com/", "https://eviltwilio.com/", "https://api.twilio.com.example/"} {
		require.ErrorContains(t, do(t, c, http.MethodGet, elsewhere, "").err, "no fake stands for")
	}
	require.Equal(t, 2, sms.Counts().Received)
	require.Equal(t, 1, geo.Counts().Received)
}

func TestBaseLeavesTheRequestAlone(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{})
	c := open(t, sms)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, messages, strings.NewReader(text("+1", "hi")))
	require.NoError(t, err)
	header := maps.Clone(r.Header)
	resp, err := c.Transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Same(t, r, resp.Request)
	require.Equal(t, messages, r.URL.String())
	require.Equal(t, header, r.Header)
}

func TestHTTP2(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{HTTP2: true, Faults: vendortest.Faults{
		Script: []vendortest.Fault{vendortest.None, vendortest.ResetAfterRead},
	}})
	c := open(t, sms)
	resp, err := c.Post(messages, "application/x-www-form-urlencoded", strings.NewReader(text("+1", "hi")))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 2, resp.ProtoMajor)
	require.Error(t, do(t, c, http.MethodPost, messages, text("+2", "hi")).err)
	require.Len(t, sms.Invoice().Lines, 2)
}

func TestCloseTwice(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{})
	sms.Close()
	sms.Close()
	require.Error(t, do(t, open(t, sms), http.MethodPost, messages, text("+1", "hi")).err)
}

func TestHalfARequestIsNotReceived(t *testing.T) {
	sms := vendortest.NewSMS(vendortest.Options{})
	fault := errors.New("the disk is gone")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, messages,
		io.MultiReader(strings.NewReader("To=%2B1&Body="), failing{fault}))
	require.NoError(t, err)
	_, err = open(t, sms).Do(r)
	require.ErrorIs(t, err, fault)
	sms.Close()
	require.Zero(t, sms.Counts().Received)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// fields decodes an answer and picks what is at the dotted paths.
func fields(t *testing.T, a answer, paths ...string) []any {
	t.Helper()
	require.NoError(t, a.err)
	var root any
	require.NoError(t, json.Unmarshal([]byte(a.body), &root), a.body)
	var got []any
	for _, p := range paths {
		v := root
		for key := range strings.SplitSeq(p, ".") {
			if list, ok := v.([]any); ok && len(list) > 0 {
				v = list[0]
			}
			m, _ := v.(map[string]any)
			v = m[key]
		}
		got = append(got, v)
	}
	return got
}
