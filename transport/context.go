package transport

import (
	"context"
	"net/http"
	"time"

	"github.com/outlay-go/outlay/throttle"
)

type (
	maxWaitKey  struct{}
	priorityKey struct{}
	tenantKey   struct{}
	attemptKey  struct{}
)

// WithMaxWait bounds the waiting of the calls made with the context, in place of
// Config.MaxWait and Provider.MaxWait. [NoWait], and here zero as well: start now or fail.
func WithMaxWait(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, maxWaitKey{}, d)
}

// WithPriority sets the priority of the calls made with the context.
func WithPriority(ctx context.Context, p throttle.Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// WithTenant names the tenant for whom the calls of the context are made; tenants take
// fair turns. The name is not shown anywhere.
func WithTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// AttemptFrom tells a Base which provider and which attempt (from 1) it is sending, if
// Config.AttemptInContext is set.
func AttemptFrom(ctx context.Context) (provider string, attempt int, ok bool) {
	a, ok := ctx.Value(attemptKey{}).(attemptInfo)
	return a.provider, a.attempt, ok
}

type attemptInfo struct {
	provider string
	attempt  int
}

// view sends requests as if they were made with the settings of a context, for SDKs
// that drop the context they are given.
type view struct {
	t   *Transport
	ctx context.Context
}

// As returns a RoundTripper that takes the record, the priority, the tenant and the
// MaxWait of its calls from ctx where the request's own context has none. Cancellation
// stays with the request's context.
func (t *Transport) As(ctx context.Context) http.RoundTripper { return view{t, ctx} }

// RoundTrip is [Transport.RoundTrip] with the settings of the view.
func (v view) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := v.t.RoundTrip(req.WithContext(&overlay{req.Context(), v.ctx}))
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// CloseIdleConnections is [Transport.CloseIdleConnections].
func (v view) CloseIdleConnections() { v.t.CloseIdleConnections() }

// overlay looks up the settings of this package in a second context as well.
type overlay struct {
	context.Context
	settings context.Context
}

func (o *overlay) Value(key any) any {
	if v := o.Context.Value(key); v != nil {
		return v
	}
	switch key.(type) {
	case maxWaitKey, priorityKey, tenantKey, recordKey:
		return o.settings.Value(key)
	}
	return nil
}
