package redisledger

import (
	"context"
	"hash/fnv"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/budget/ledgertest"
	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// subject opens ledgers in one Redis, each store of the suite under a name of its own.
func subject(client redis.UniversalClient) ledgertest.Subject {
	return ledgertest.Subject{
		ServerTime: true,
		Open: func(t testing.TB, o ledgertest.Options) budget.Ledger {
			h := fnv.New64a()
			_, _ = h.Write([]byte(o.Dir))
			return open1(t, client, Options{Name: strconv.FormatUint(h.Sum64(), 16)})
		},
		Crash: func(t testing.TB, l budget.Ledger) { l.(*Ledger).crash(t) },
	}
}

// open1 opens a ledger without the wait for a Redis that may have lost its books.
func open1(t testing.TB, client redis.UniversalClient, o Options) *Ledger {
	t.Helper()
	if o.Learn == 0 {
		o.Learn = -1
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second // the machine or its disk may be busy, and no test waits for it
	}
	l, err := New(client, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// crash ends a ledger as the death of its process would, and lets the time pass after
// which an instance counts as dead.
func (l *Ledger) crash(t testing.TB) {
	l.stop()
	<-l.done
	<-l.sent
	l.mu.Lock()
	l.waiting, l.away, l.closed = nil, nil, true
	l.mu.Unlock()
	require.NoError(t, l.store.Client.ZAddXX(context.Background(), l.keys.owners, redis.Z{Score: 1, Member: l.id}).Err())
}

func TestConformance(t *testing.T) {
	ledgertest.Run(t, subject(redistest.Start(t).Client(t)))
}
