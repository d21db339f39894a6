// Package transport is an [http.RoundTripper] that stands between a program and the
// third-party APIs it pays for. Each outgoing call waits its turn on the provider's
// rate, is paid for from a budget before it leaves, obeys what the provider answers,
// and is retried only when a retry cannot bill twice ([ReplayNever] names the one
// exception, in which each attempt is paid for).
//
//	rt, err := transport.New(transport.Config{Ledger: ledger, Providers: providers})
//	client := rt.Client() // use it, or hand it to an SDK
//
// # What is charged when
//
// An attempt is held at its quoted price before it is sent. A 2xx answer settles the
// hold, at the real cost where the answer tells it; a client error such as 400 or 404
// settles it at the quote, since vendors may bill lookups without a result. An attempt
// of which no byte was written voids it, and so does a redirect, 401, 402, 403, 407, 429,
// a 503 with Retry-After, or a status in Retry.NotTaken. When nobody knows (no answer,
// another server error, a stream cut short) it is presumed spent, and only evidence
// lowers it. Where the provider's Dialect knows what its vendor bills, that decides
// instead. See [Provider] and package budget.
//
// # Errors
//
// Refusals are errors of their own types: nothing was sent and nothing was charged. The
// provider's last answer, even a 429, is returned as a response. [NotSent],
// [OutcomeUnknown] and [RetryAt] answer what a caller asks next; they see through
// [net/url.Error] and through what SDKs wrap around it.
package transport

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle"
)

// Transport is an [http.RoundTripper]; [New] makes one. It is safe for concurrent use and
// starts no goroutine of its own but for the time in which Status and its like read the
// ledger.
type Transport struct {
	base             http.RoundTripper
	ledger           budget.Ledger
	limiter          throttle.Limiter
	onEvent          func(context.Context, Event)
	attemptInContext bool
	traced           bool // Base reports to httptrace all that it does

	setup      atomic.Pointer[setup]
	updating   sync.Mutex // held by one Update at a time
	aliasKey   [32]byte   // see alias
	boot       uint64
	calls      atomic.Uint64
	holds      atomic.Uint64
	operations atomic.Uint64          // of operators: see frozenCache
	date       atomic.Pointer[string] // the last Date header read
	scratches  sync.Pool              // of *scratch

	ledgerHealth, limiterHealth health
	readers                     atomic.Int32 // see within
}

// setup is a validated configuration. It is immutable; a new one replaces it whole.
type setup struct {
	routes    *routes
	providers []*provider
	unmatched Unmatched
}

// New validates the configuration and returns a Transport. Its error names every wrong
// field by its path.
func New(c Config) (*Transport, error) {
	set, err := compile(c, nil)
	if err != nil {
		return nil, err
	}
	t := &Transport{
		base: c.Base, ledger: c.Ledger, limiter: c.Limiter, onEvent: c.OnEvent,
		attemptInContext: c.AttemptInContext, boot: rand.Uint64(),
		scratches:    sync.Pool{New: newScratch},
		ledgerHealth: health{store: "ledger"}, limiterHealth: health{store: "limiter"},
	}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	_, plain := t.base.(*http.Transport)
	t.traced = plain || c.TracedBase
	if t.limiter == nil {
		t.limiter = throttle.NewBucket()
	}
	_, _ = crand.Read(t.aliasKey[:]) // never fails
	t.setup.Store(set)
	return t, nil
}

// Client returns an [http.Client] over t, to be used or handed to an SDK. Each call
// returns a new one, so that its Timeout and its redirect rule may be set.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// CloseIdleConnections closes the idle connections of Base, if it can. With a nil
// Config.Base that is http.DefaultTransport, which others may use as well.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
