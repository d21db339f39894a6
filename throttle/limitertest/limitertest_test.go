package limitertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBucket(t *testing.T) {
	Run(t, func(*testing.T) throttle.Limiter { return throttle.NewBucket() })
}

func TestBucketBehindFallback(t *testing.T) {
	Run(t, func(*testing.T) throttle.Limiter {
		return throttle.Fallback(throttle.NewBucket(), throttle.NewBucket())
	})
}

func TestFallbackWithoutSharedLimiter(t *testing.T) {
	Run(t, func(*testing.T) throttle.Limiter { return throttle.Fallback(down{}, throttle.NewBucket()) })
}

// down is a shared limiter that does not answer waits, and takes caps.
type down struct{}

func (down) Wait(context.Context, throttle.Ask) (throttle.Turn, error) {
	return throttle.Turn{}, throttle.ErrUnavailable
}
func (down) Cap(context.Context, throttle.Cap) error { return nil }

// broken changes one thing about a good limiter.
type broken struct {
	throttle.Limiter
	ask func(*throttle.Ask)
	cap func(*throttle.Cap)
}

func (b broken) Wait(ctx context.Context, a throttle.Ask) (throttle.Turn, error) {
	if b.ask != nil {
		a.Legs = append([]throttle.Leg(nil), a.Legs...)
		b.ask(&a)
	}
	return b.Limiter.Wait(ctx, a)
}

func (b broken) Cap(ctx context.Context, c throttle.Cap) error {
	if b.cap != nil {
		b.cap(&c)
	}
	return b.Limiter.Cap(ctx, c)
}

// TestSuiteFindsFaults runs parts of the suite on limiters with one fault each.
func TestSuiteFindsFaults(t *testing.T) {
	for fault, c := range map[string]struct {
		check string
		b     broken
	}{
		"forgets weights":                {"weights are taken", broken{ask: func(a *throttle.Ask) { a.Legs[0].Weight = 1 }}},
		"forgets all legs but the first": {"a refused leg takes nothing from the others", broken{ask: func(a *throttle.Ask) { a.Legs = a.Legs[:1] }}},
		"forgets slots":                  {"slots are held until Done", broken{ask: func(a *throttle.Ask) { a.Legs[0].Slots = 0 }}},
		"ignores classes":                {"a critical call passes bulk calls", broken{ask: func(a *throttle.Ask) { a.Priority = throttle.Normal }}},
		"ignores tenants":                {"tenants take turns", broken{ask: func(a *throttle.Ask) { a.Tenant = "" }}},
		"ignores gates":                  {"a gate lets nobody start and only moves later", broken{cap: func(c *throttle.Cap) { c.Key = "other" }}},
		"caps from now on":               {"a cap counts from the turn whose answer set it", broken{cap: func(c *throttle.Cap) { c.Turn = throttle.Turn{} }}},
		"ignores slow":                   {"slow lowers the rate", broken{cap: func(c *throttle.Cap) { c.Slow = false }}},
		"never opens":                    {"an operator opens a gate", broken{cap: func(c *throttle.Cap) { c.Reopen = false }}},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			c.b.Limiter = throttle.NewBucket()
			require.Error(t, named(t, c.check).run(newTrial(t.Context(), c.b)))
		})
	}
}

func named(t *testing.T, name string) check {
	for _, c := range checks {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return check{}
}
