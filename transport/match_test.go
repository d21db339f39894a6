package transport_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/transport"
)

// tags is a transport whose providers are known by the event that each call leaves.
func matcher(t *testing.T, unmatched transport.Unmatched, patterns map[string][]string) func(*http.Request) (string, error) {
	w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, p *transport.Provider) {
		c.Unmatched = unmatched
		p.Match = []string{"unused.invalid"}
		for name, match := range patterns {
			c.Providers = append(c.Providers, transport.Provider{Name: name, Match: match})
		}
	})
	return func(req *http.Request) (string, error) {
		sent := len(w.base.at())
		_, err := w.RoundTrip(req)
		finished := w.eventsOf(transport.KindFinished)
		e := finished[len(finished)-1]
		if err != nil {
			require.Len(t, w.base.at(), sent, "nothing may leave")
			return "refused", err
		}
		if e.Outcome == "passed" {
			return "passed", nil
		}
		return e.Provider, nil
	}
}

func TestMatching(t *testing.T) {
	patterns := map[string][]string{
		"whole":  {"maps.example.com"},
		"send":   {"POST api.example.com/v1/messages", "POST api.example.com/v1/messages/"},
		"lookup": {"api.example.com/v1/lookup/{number}"},
		"region": {"*.region.example.net"},
		"inner":  {"*.eu.region.example.net/v2/"},
		"case":   {"API.Upper.Example:8443/x"},
	}
	for _, c := range []struct{ method, url, pass, all, none string }{
		{"GET", "https://maps.example.com", "whole", "whole", "whole"},
		{"GET", "https://maps.example.com/maps/api/geocode/json?key=k", "whole", "whole", "whole"},
		{"GET", "https://MAPS.example.com.:443/x", "whole", "whole", "whole"},
		{"GET", "http://maps.example.com//x/../y", "whole", "whole", "whole"},
		{"POST", "https://api.example.com/v1/messages", "send", "send", "send"},
		{"POST", "https://api.example.com//v1/messages", "send", "send", "send"},
		{"POST", "https://api.example.com/v1/../v1/messages", "send", "send", "send"},
		{"POST", "https://api.example.com/v1/messages/1", "send", "send", "send"},
		{"GET", "https://api.example.com/v1/messages", "refused", "passed", "refused"},
		{"", "https://api.example.com/v1/lookup/123", "lookup", "lookup", "lookup"},
		{"GET", "https://api.example.com/v1/lookup/%31%32", "lookup", "lookup", "lookup"},
		{"GET", "https://api.example.com/v1/lookup/1/2", "refused", "passed", "refused"},
		{"GET", "https://api.example.com/", "refused", "passed", "refused"},
		{"GET", "https://a.region.example.net/x", "region", "region", "region"},
		{"GET", "https://a.b.region.example.net/x", "region", "region", "region"},
		{"GET", "https://a.eu.region.example.net/v2/x", "inner", "inner", "inner"},
		{"GET", "https://a.eu.region.example.net/v1/x", "region", "region", "region"},
		{"GET", "https://region.example.net/x", "passed", "passed", "refused"},
		{"GET", "https://api.upper.example/x", "case", "case", "case"},
		{"GET", "https://other.example.org/x", "passed", "passed", "refused"},
		{"GET", "https://maps.example.com.evil.org/x", "passed", "passed", "refused"},
		{"GET", "https://ｍａｐｓ.example.com/x", "refused", "refused", "refused"},
		{"GET", "https://ma\u00adps.example.com/x", "refused", "refused", "refused"},
	} {
		for unmatched, want := range map[transport.Unmatched]string{transport.PassUnknownHosts: c.pass, transport.PassAll: c.all, transport.RefuseAll: c.none} {
			u, err := url.Parse(c.url)
			require.NoError(t, err)
			got, err := matcher(t, unmatched, patterns)((&http.Request{Method: c.method, URL: u}).WithContext(t.Context()))
			require.Equal(t, want, got, "%s %s, Unmatched %d", c.method, c.url, unmatched)
			if want == "refused" {
				require.ErrorIs(t, err, transport.ErrUnmatched)
				require.True(t, transport.NotSent(err))
				require.NotContains(t, err.Error(), u.Host)
			}
		}
	}
}

func TestRequestsWithoutURL(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}))
	_, err := w.RoundTrip(&http.Request{Method: "GET"})
	require.ErrorContains(t, err, "without URL")
	require.Empty(t, w.base.at())
}

// The host of the URL is dialled, whatever the Host header says.
func TestHostHeaderDoesNotHideTheProvider(t *testing.T) {
	find := matcher(t, transport.PassUnknownHosts, map[string][]string{"whole": {"maps.example.com"}})
	u, _ := url.Parse("https://maps.example.com/x")
	got, err := find((&http.Request{Method: "GET", URL: u, Host: "other.example.org"}).WithContext(t.Context()))
	require.NoError(t, err)
	require.Equal(t, "whole", got)
}

func TestOpaqueURLsAreMatchedByWhatIsSent(t *testing.T) {
	find := matcher(t, transport.PassUnknownHosts, map[string][]string{"send": {"api.example.com/v1/messages"}})
	for opaque, want := range map[string]string{"//api.example.com/v1/messages": "send", "/v1/messages": "send", "//api.example.com/v1/other": "refused"} {
		u := &url.URL{Scheme: "https", Host: "api.example.com", Opaque: opaque}
		got, _ := find((&http.Request{Method: "GET", URL: u}).WithContext(t.Context()))
		require.Equal(t, want, got, opaque)
	}
}

func FuzzMatch(f *testing.F) {
	for _, s := range []string{"maps.example.com", "MAPS.EXAMPLE.COM.", "maps.example.com:80", "[::1]:80", "a.region.example.net", "", ".", "::", "maps.example.com..", "xn--a.example"} {
		f.Add(s, "/v1//x/../y")
	}
	f.Fuzz(func(t *testing.T, host, path string) {
		find := matcher(t, transport.PassUnknownHosts, map[string][]string{"whole": {"maps.example.com"}, "region": {"*.region.example.net"}})
		_, _ = find((&http.Request{Method: "GET", URL: &url.URL{Scheme: "https", Host: host, Path: path}}).WithContext(t.Context()))
	})
}
