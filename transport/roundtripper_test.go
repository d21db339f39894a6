package transport_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
	"github.com/outlay-go/outlay/transport"
)

func TestCloseIdleConnectionsIsForwarded(t *testing.T) {
	w := newWorld(t, answers(t, answer{status: 200}))
	w.Client().CloseIdleConnections()
	require.Equal(t, 1, w.base.closed)
	plain := metered(t, roundTripFunc(func(*http.Request) (*http.Response, error) { return nil, io.EOF }), "api.example.com")
	plain.Client().CloseIdleConnections()
	metered(t, nil, "api.example.com").Client().CloseIdleConnections()
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestItWorksOverHTTPMock(t *testing.T) {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder("GET", apiURL, httpmock.NewStringResponder(200, "hello"))
	rt := metered(t, mock, "api.example.com")
	resp, err := rt.Client().Get(apiURL)
	require.NoError(t, err)
	require.Equal(t, "hello", read(t, resp))
	require.Equal(t, "1", booked(t, rt).Settled.String())
}

// Every hop of a redirect is a call of its own and is charged by what it was answered.
func TestRedirects(t *testing.T) {
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "/b", http.StatusTemporaryRedirect)
		case "/b":
			http.Redirect(w, r, "/c", http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	t.Cleanup(srv.Close)
	rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "http://"))
	ctx, rec := transport.Record(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/a", strings.NewReader("text"))
	require.NoError(t, err)
	resp, err := rt.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 201, resp.StatusCode)
	require.Equal(t, []string{"text", "text", "text"}, bodies)
	require.Equal(t, 3, rec.Attempts())
	require.Equal(t, "1", booked(t, rt).Used().String())
}

func TestTrailersPass(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Sum")
		_, _ = io.WriteString(w, "data")
		w.Header().Set("Sum", "42")
	}))
	t.Cleanup(srv.Close)
	rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "http://"), func(_ *transport.Config, p *transport.Provider) { p.MaxInFlight = 1 })
	resp, err := rt.Client().Get(srv.URL)
	require.NoError(t, err)
	require.Equal(t, "data", read(t, resp))
	require.Equal(t, "42", resp.Trailer.Get("Sum"))
}

func TestRefusalInTheVendorsShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), limit("0.5"), func(_ *transport.Config, p *transport.Provider) {
			p.Refusal = func(r transport.Refused) (int, http.Header, []byte) {
				return 402, http.Header{"Content-Type": {"application/json"}}, fmt.Appendf(nil, `{"code":%q}`, r.Reason)
			}
		})
		resp, err := w.get()
		require.NoError(t, err)
		require.Equal(t, 402, resp.StatusCode)
		require.Equal(t, `{"code":"exhausted"}`, read(t, resp))
		require.Empty(t, w.base.at())
	})
}

// Nothing that leaves may hold a secret: not in clear, not escaped, not in base64.
func TestNoSecretLeaves(t *testing.T) {
	const secret = "s3cr3t/Zürich+4917012345"
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), "s3cr3t", "4917012345"}
	configs := map[string]func(*transport.Config, *transport.Provider){
		"ok":        func(*transport.Config, *transport.Provider) {},
		"exhausted": limit("0.5"),
		"rate": func(c *transport.Config, p *transport.Provider) {
			p.Rates, c.MaxWait = []throttle.Rate{throttle.PerMinute(1)}, transport.NoWait
		},
		"ledger": func(c *transport.Config, _ *transport.Provider) {
			c.Ledger = &counting{Ledger: c.Ledger, fail: budget.ErrUnavailable}
		},
		"pricer":   func(_ *transport.Config, p *transport.Provider) { p.Price = failing{secret} },
		"unpriced": func(_ *transport.Config, p *transport.Provider) { p.Price = unpriced{} },
		"scope": func(c *transport.Config, p *transport.Provider) {
			p.Scopes = []transport.Scope{{Name: "sender", Key: func(r *http.Request) string { return r.Header.Get("Authorization") }, Rates: []throttle.Rate{throttle.PerMinute(1)}}}
			c.MaxWait = transport.NoWait
		},
		"tenant": func(_ *transport.Config, p *transport.Provider) {
			p.BudgetsFor = func(*http.Request, budget.Quote) []budget.Budget {
				b := budget.PerDay(budget.MustParse("0.5"))
				b.Name = "tenant " + secret
				return []budget.Budget{b}
			}
		},
		"unmatched": func(c *transport.Config, p *transport.Provider) { p.Match = []string{"api.example.com/other"} },
		"monitor":   func(_ *transport.Config, p *transport.Provider) { p.Monitor = true },
	}
	for name, config := range configs {
		for _, a := range []answer{
			{status: 200, body: secret},
			{status: 403, body: `{"error":"key ` + secret + ` invalid"}`, header: "Location: https://x/" + secret + "\nX-Request: " + secret},
			{status: 429, header: "Retry-After: " + secret + "\nRateLimit: \"" + secret + "\";r=0;t=9999", body: secret},
			{status: 500, body: secret},
			{err: errReset},
			{err: errDial},
		} {
			t.Run(fmt.Sprint(name, a.status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var out bytes.Buffer
					w := newWorld(t, answers(t, a), config, func(c *transport.Config, _ *transport.Provider) {
						c.OnEvent = transport.Tee(
							transport.LogTo(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), transport.LogOptions{}),
							transport.LogTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), transport.LogOptions{}),
							func(_ context.Context, e transport.Event) { fmt.Fprintf(&out, "%+v %v\n", e, e.LogValue()) },
						)
					})
					for range 3 {
						req, err := http.NewRequestWithContext(t.Context(), "POST", "https://user:"+url.PathEscape(secret)+"@api.example.com/"+url.PathEscape(secret)+"?key="+url.QueryEscape(secret), strings.NewReader(secret))
						require.NoError(t, err)
						req.Header.Set("Authorization", secret)
						resp, err := w.RoundTrip(req)
						if err != nil {
							fmt.Fprintf(&out, "%v %+v\n", err, err)
							continue
						}
						_ = resp.Body.Close()
					}
					require.NotEmpty(t, out.String())
					for _, f := range forms {
						require.NotContains(t, out.String(), f)
					}
				})
			})
		}
	}
}

type failing struct{ text string }

func (f failing) Quote(*http.Request) (budget.Quote, error) {
	return budget.Quote{}, errors.New(f.text)
}

func TestLogsDoNotFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := transport.LogTo(slog.New(slog.NewTextHandler(&out, nil)), transport.LogOptions{})
		w := newWorld(t, answers(t, answer{status: 200}), limit("0.5"), func(c *transport.Config, _ *transport.Provider) { c.OnEvent = log })
		for range 2000 {
			_, err := w.get()
			require.Error(t, err)
			time.Sleep(10 * time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], `level=WARN msg="call refused" provider=api`)
		require.Contains(t, lines[0], "reason=exhausted budget=day window=2000-01-01")
		require.Contains(t, lines[1], "suppressed=999")
	})
}

func TestFinishedCallsAreLoggedAtTheLevelAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := newWorld(t, answers(t, answer{status: 200}), func(c *transport.Config, _ *transport.Provider) {
			c.OnEvent = transport.LogTo(slog.New(slog.NewTextHandler(&out, nil)), transport.LogOptions{Calls: slog.LevelInfo})
		})
		for range 3 {
			_, err := w.get()
			require.NoError(t, err)
		}
		require.Equal(t, 3, strings.Count(out.String(), `msg="call finished" provider=api`))
		require.Contains(t, out.String(), "outcome=answered status=200 cost=1 unit=USD")
	})
}

func TestViewCarriesTheSettingsOfAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}), rate(throttle.PerMinute(1)))
		ctx, rec := transport.Record(transport.WithMaxWait(context.Background(), transport.NoWait))
		client := &http.Client{Transport: w.As(ctx)}
		_, err := client.Get(apiURL)
		require.NoError(t, err)
		_, err = client.Get(apiURL)
		require.Equal(t, transport.ReasonRate, transport.ReasonOf(err))
		require.Len(t, rec.Calls(), 2)
	})
}

func TestAViewNamesTheCallersRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, answers(t, answer{status: 200}))
		req := request(t, t.Context(), nil)
		resp, err := w.As(context.Background()).RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, req, resp.Request)
	})
}

func TestBaseMayFindTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := answers(t, answer{})
		var seen []string
		base.answer = func(n int, req *http.Request) (*http.Response, error) {
			p, i, ok := transport.AttemptFrom(req.Context())
			require.True(t, ok)
			seen = append(seen, fmt.Sprint(p, i))
			return base.response(req, answer{status: map[int]int{1: 429, 2: 200}[n]}), nil
		}
		w := newWorld(t, base, func(c *transport.Config, _ *transport.Provider) { c.AttemptInContext = true })
		_, err := w.get()
		require.NoError(t, err)
		require.Equal(t, []string{"api1", "api2"}, seen)
	})
}
