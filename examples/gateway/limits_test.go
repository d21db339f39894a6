package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/transport/gateway"
)

// hanging is a ledger that does not answer until it may.
type hanging struct{ asked, answer chan struct{} }

func (h hanging) Others(context.Context) (int, error) {
	close(h.asked)
	<-h.answer
	return 0, nil
}

func (h hanging) Budgets(context.Context, time.Time) ([]budget.Totals, error) { return nil, nil }

func TestThePageDoesNotWaitForTheComparisonOfLimits(t *testing.T) {
	h := hanging{make(chan struct{}), make(chan struct{})}
	l := &limits{ledger: h, found: []string{"they differ"}}
	done := make(chan struct{})
	go func() {
		l.look(&gateway.File{}, time.Now())
		close(done)
	}()
	<-h.asked
	told := make(chan []string, 1)
	go func() { told <- l.told() }()
	select {
	case found := <-told:
		require.Equal(t, []string{"they differ"}, found)
	case <-time.After(5 * time.Second):
		t.Error("it waits for the ledger")
	}
	close(h.answer)
	<-done
	require.Empty(t, l.told())
}
