package redisledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// inspect refuses servers that cannot keep the books, and notes what makes them unsafe.
func (l *Ledger) inspect(ctx context.Context) error {
	if err := l.store.Start(ctx); err != nil {
		return explain(err)
	}
	faults := l.faults(ctx)
	if len(faults) > 0 && l.options.Durable {
		return fmt.Errorf("%w: %s", budget.ErrUnavailable, strings.Join(faults, "; "))
	}
	for _, f := range faults {
		l.note(f)
	}
	return nil
}

// faults says by what settings the server may lose books.
func (l *Ledger) faults(ctx context.Context) []string {
	set, _, err := do(ctx, l.store, func(ctx context.Context) (map[string]string, error) {
		if c, ok := l.store.Client.(*redis.ClusterClient); ok {
			master, err := c.MasterForKey(ctx, l.keys.generation)
			if err != nil {
				return nil, err
			}
			return master.ConfigGet(ctx, "*").Result()
		}
		return l.store.Client.ConfigGet(ctx, "*").Result()
	})
	return unsafe(set, err)
}

func unsafe(set map[string]string, err error) (faults []string) {
	policy, known := set["maxmemory-policy"]
	switch {
	case err != nil || !known:
		return []string{"the server does not tell its settings: make sure that maxmemory-policy is noeviction and that appendonly is on"}
	case policy != "noeviction":
		faults = append(faults, "maxmemory-policy is "+policy+": Redis may evict the books; set noeviction")
	}
	if set["appendonly"] != "yes" && set["save"] == "" {
		faults = append(faults, "Redis keeps nothing on disk: a restart loses the books; set appendonly yes")
	} else if set["appendonly"] != "yes" {
		faults = append(faults, "Redis keeps snapshots only: a crash loses the books since the last; set appendonly yes")
	}
	return faults
}

func explain(err error) error {
	return redisstore.Explain(err, "@scripting, @hash, @sortedset, @stream, @keyspace, info and time on the keys of the prefix", "Prefix or Name")
}
