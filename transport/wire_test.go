package transport_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport"
)

// HTTP/2 on the wire (RFC 9113, section 6), as far as resettingServer needs it.
const (
	frameData, frameHeaders, frameReset, frameSettings = 0x0, 0x1, 0x3, 0x4

	flagEndStream, flagAck = 0x1, 0x1

	codeProtocolError, codeRefusedStream = 0x1, 0x7
)

func writeFrame(w io.Writer, kind, flags byte, stream uint32, payload ...byte) {
	h := []byte{0, 0, byte(len(payload)), kind, flags}
	_, _ = w.Write(append(binary.BigEndian.AppendUint32(h, stream), payload...))
}

// resettingServer speaks HTTP/2 without TLS, reads every request to its end and answers
// it with RST_STREAM.
func resettingServer(t *testing.T, code byte) (addr string, seen *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	seen = new(atomic.Int32)
	var wg sync.WaitGroup
	stop, cancel := context.WithCancel(context.Background())
	serve := func(conn net.Conn) {
		defer conn.Close()
		defer context.AfterFunc(stop, func() { _ = conn.Close() })()
		preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		if _, err := io.ReadFull(conn, preface); err != nil {
			return
		}
		writeFrame(conn, frameSettings, 0, 0)
		for h := make([]byte, 9); ; {
			if _, err := io.ReadFull(conn, h); err != nil {
				return
			}
			size := int64(h[0])<<16 | int64(h[1])<<8 | int64(h[2])
			if _, err := io.CopyN(io.Discard, conn, size); err != nil {
				return
			}
			switch kind, flags := h[3], h[4]; {
			case kind == frameSettings && flags&flagAck == 0:
				writeFrame(conn, frameSettings, flagAck, 0)
			case (kind == frameHeaders || kind == frameData) && flags&flagEndStream != 0:
				seen.Add(1)
				writeFrame(conn, frameReset, 0, binary.BigEndian.Uint32(h[5:]), 0, 0, 0, code)
			}
		}
	}
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); cancel(); wg.Wait() })
	return l.Addr().String(), seen
}

func cleartextHTTP2(t *testing.T) *http.Transport {
	base := &http.Transport{Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(base.CloseIdleConnections)
	return base
}

// A PROTOCOL_ERROR proves nothing, but net/http would send the request again and again.
func TestHTTP2ProtocolErrorsAreNotRepeated(t *testing.T) {
	for _, c := range append(replayCases, struct{ name, method, body, key string }{"POST without body", "POST", "", ""}) {
		t.Run(c.name, func(t *testing.T) {
			addr, seen := resettingServer(t, codeProtocolError)
			rt := metered(t, cleartextHTTP2(t), addr, func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 4 })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := rt.RoundTrip(replayRequest(t, "http://"+addr, c.method, c.body, c.key).WithContext(ctx))
			require.Error(t, err)
			require.EqualValues(t, 1, seen.Load(), "times the server saw the request")
			require.True(t, transport.OutcomeUnknown(err), "got %v", err)
			require.Equal(t, "1", booked(t, rt).Presumed.String())
		})
	}
}

// A refused stream was not processed: the text by which it is known is net/http's.
func TestHTTP2RefusedStreamsAreNotTaken(t *testing.T) {
	addr, seen := resettingServer(t, codeRefusedStream)
	rt := metered(t, cleartextHTTP2(t), addr, func(_ *transport.Config, p *transport.Provider) {
		p.Retry = transport.Retry{Attempts: 2, Backoff: time.Millisecond}
	})
	_, err := rt.RoundTrip(replayRequest(t, "http://"+addr, "POST", "text", ""))
	require.Error(t, err)
	require.EqualValues(t, 2, seen.Load())
	require.Zero(t, booked(t, rt).Used())
}

func TestHTTP1BodylessPostIsNotReplayed(t *testing.T) {
	addr, seen := dyingServer(t)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	rt := metered(t, base, addr)
	warm := replayRequest(t, "http://"+addr, "GET", "", "")
	warm.Header.Set("Warm", "1")
	resp, err := rt.RoundTrip(warm)
	require.NoError(t, err)
	_ = read(t, resp)
	_, err = rt.RoundTrip(replayRequest(t, "http://"+addr, "POST", "", "k1"))
	require.Error(t, err)
	require.EqualValues(t, 1, seen.Load())
	require.True(t, transport.OutcomeUnknown(err))
}

// The hooks of one caller must not see the calls of others.
func TestTracesOfCallersStayTheirOwn(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "http://"))
	var seen []string
	trace := &httptrace.ClientTrace{WroteHeaderField: func(k string, v []string) {
		if k == "Authorization" {
			seen = append(seen, v...)
		}
	}}
	for _, who := range []string{"A", "B", "C"} {
		ctx := t.Context()
		if who == "A" {
			ctx = httptrace.WithClientTrace(ctx, trace)
		}
		req, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "secret of "+who)
		resp, err := rt.RoundTrip(req)
		require.NoError(t, err)
		_ = read(t, resp)
	}
	require.Equal(t, []string{"secret of A"}, seen)
}

// A Base that tries a second way by itself reports only the first to httptrace.
func TestABaseThatReportsOnlyAPartProvesNothing(t *testing.T) {
	sent := 0
	dead := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }}
	fallback := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		_, _ = dead.RoundTrip(req)
		sent++
		return nil, errors.New("reset by the second way")
	})
	rt := metered(t, fallback, "api.example.com", func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 4 })
	_, err := rt.RoundTrip(request(t, t.Context(), strings.NewReader("text")))
	require.True(t, transport.OutcomeUnknown(err))
	require.Equal(t, 1, sent)
	require.Equal(t, "1", booked(t, rt).Presumed.String())
}

func TestWhatNetHTTPRefusesToSendIsNotSent(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"header":    func(r *http.Request) { r.Header["X"] = []string{"a\nb"} },
		"scheme":    func(r *http.Request) { r.URL.Scheme = "gopher" },
		"method":    func(r *http.Request) { r.Method = "GET IT" },
		"no method": func(r *http.Request) { r.Method, r.Header = "BAD METHOD", nil },
	} {
		t.Run(name, func(t *testing.T) {
			rt := metered(t, &http.Transport{}, "api.example.com")
			req := request(t, t.Context(), strings.NewReader("text"))
			change(req)
			_, err := rt.RoundTrip(req)
			require.True(t, transport.NotSent(err), "got %v", err)
			require.Zero(t, booked(t, rt).Used())
		})
	}
}

func TestARequestWithoutHeaderIsSent(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	rt := metered(t, srv.Client().Transport, strings.TrimPrefix(srv.URL, "http://"))
	req := replayRequest(t, srv.URL, "GET", "", "")
	req.Header = nil
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Nil(t, req.Header)
}

func TestACallerWhoLeavesBeforeTheSend(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rt := metered(t, &http.Transport{}, "api.example.com", func(c *transport.Config, _ *transport.Provider) {
		c.OnEvent = func(_ context.Context, e transport.Event) {
			if e.Kind == transport.KindThreshold || e.Kind == transport.KindStarted {
				cancel()
			}
		}
	})
	_, err := rt.RoundTrip(request(t, ctx, strings.NewReader("text")))
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, transport.NotSent(err))
	require.Zero(t, booked(t, rt).Used())
}

// keeping keeps the context of an operation longer than the call.
type keeping struct {
	*budget.Memory
	ctx context.Context
}

func (l *keeping) Resolve(ctx context.Context, id budget.HoldID, o budget.Outcome) (budget.Report, error) {
	if l.ctx == nil {
		l.ctx = ctx
	}
	return l.Memory.Resolve(ctx, id, o)
}

type ctxKey struct{}

func TestAContextThatALedgerKeepsStaysThatOfItsCall(t *testing.T) {
	ledger := &keeping{Memory: new(budget.Memory)}
	base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		if ledger.ctx != nil {
			require.Equal(t, "first", ledger.ctx.Value(ctxKey{}))
		}
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	rt := metered(t, base, "api.example.com", func(c *transport.Config, _ *transport.Provider) { c.Ledger = ledger })
	for _, who := range []string{"first", "second"} {
		_, err := rt.RoundTrip(request(t, context.WithValue(t.Context(), ctxKey{}, who), nil))
		require.NoError(t, err)
	}
	require.Equal(t, "first", ledger.ctx.Value(ctxKey{}))
	require.NoError(t, ledger.ctx.Err())
}

// A protocol that is registered with net/http sends without a word to httptrace.
func TestARegisteredProtocolProvesNothing(t *testing.T) {
	sent := 0
	base := &http.Transport{}
	base.RegisterProtocol("https", roundTripFunc(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, errReset
	}))
	rt := metered(t, base, "api.example.com", func(_ *transport.Config, p *transport.Provider) { p.Retry.Attempts = 4 })
	_, err := rt.RoundTrip(request(t, t.Context(), strings.NewReader("text")))
	require.True(t, transport.OutcomeUnknown(err))
	require.Equal(t, 1, sent)
	require.Equal(t, "1", booked(t, rt).Presumed.String())
}
