package redisledger

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle/redislimiter/redistest"
)

func TestNoErrorHasThePassword(t *testing.T) {
	redistest.NoErrorHasThePassword(t, "mine:{ledger}:generation", func(client redis.UniversalClient) error {
		_, err := New(client, Options{Prefix: "mine"})
		return err
	})
}

func TestNoNoticeHasThePassword(t *testing.T) {
	s := redistest.Start(t, "--requirepass", redistest.Secret)
	client := redis.NewClient(&redis.Options{Addr: s.Addr, Password: redistest.Secret, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	l := open1(t, client, Options{Timeout: quick, beat: 20 * time.Millisecond})
	spend(t, l, month(), "1")
	s.Kill()
	var told strings.Builder
	for range 20 {
		report, err := l.Hold(context.Background(), holdOf(month(), "1"))
		told.WriteString(fmt.Sprint(err, report.Notices))
	}
	require.Contains(t, told.String(), "does not answer")
	redistest.NoSecret(t, told.String())
}

// Package transport shows the mode of a ledger that tells one.
var _ interface{ Mode() string } = (*Ledger)(nil)
