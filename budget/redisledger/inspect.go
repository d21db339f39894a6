package redisledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/outlay-go/outlay/budget"
)

// inspect refuses servers that cannot keep the books, and notes what makes them unsafe.
func (l *Ledger) inspect(ctx context.Context) error {
	info, _, err := do(ctx, l.store, func(ctx context.Context) (string, error) { return l.store.client.Info(ctx, "server").Result() })
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		return explain(err)
	}
	if v := field(info, "redis_version"); v != "" && older(v, 6, 2) {
		return fmt.Errorf("%w: the server is Redis %s, at least 6.2 is needed", budget.ErrUnavailable, v)
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
		if c, ok := l.store.client.(*redis.ClusterClient); ok {
			master, err := c.MasterForKey(ctx, l.keys.generation)
			if err != nil {
				return nil, err
			}
			return master.ConfigGet(ctx, "*").Result()
		}
		return l.store.client.ConfigGet(ctx, "*").Result()
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

func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// older reports whether a version is before major.minor; one that cannot be read is not.
func older(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a < major || a == major && b < minor)
}

// explain says what to do about an error at the start.
func explain(err error) error {
	if err == nil {
		return nil
	}
	help := ""
	switch {
	case redis.HasErrorPrefix(err, "NOPERM"):
		help = "the user needs @scripting, @hash, @sortedset, @stream, @keyspace, info and time on the keys of the prefix"
	case redis.HasErrorPrefix(err, "NOAUTH"), redis.HasErrorPrefix(err, "WRONGPASS"):
		help = "check user name and password of the client"
	case redis.HasErrorPrefix(err, "WRONGTYPE") || strings.Contains(err.Error(), "WRONGTYPE"):
		help = "keys of another program are under this prefix: choose another Prefix or Name"
	case redis.HasErrorPrefix(err, "MOVED"):
		help = "the server is part of a cluster: use a cluster client"
	case errors.Is(err, context.DeadlineExceeded):
		help = "the server does not answer: check the address, and TLS on both sides"
	}
	if help == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, help)
}
