package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The oldest server that will do: it has exclusive ranges and PXAT.
const major, minor = 6, 2

// Start refuses servers that are too old. One that does not say passes.
func (s *Store) Start(ctx context.Context) error {
	info, _, err := Do(ctx, s, func(ctx context.Context) (string, error) { return s.Client.Info(ctx, "server").Result() })
	if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
		return err
	}
	if v := Field(info, "redis_version"); v != "" && older(v, major, minor) {
		return fmt.Errorf("%w: the server is Redis %s, at least %d.%d is needed", s.unavailable, v, major, minor)
	}
	return nil
}

// Field is a field of what INFO says.
func Field(info, name string) string {
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

// Explain says what to do about an error at the start: what the user needs, and what to
// choose if the keys are those of another program.
func Explain(err error, needs, choose string) error {
	help := ""
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "NOPERM"):
		help = "the user needs " + needs
	case redis.HasErrorPrefix(err, "NOAUTH"), redis.HasErrorPrefix(err, "WRONGPASS"):
		help = "check user name and password of the client"
	case isForeign(err):
		help = "keys of another program are under this prefix: choose another " + choose
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

// isForeign reports whether a key holds what we did not write.
func isForeign(err error) bool {
	return slices.ContainsFunc([]string{"WRONGTYPE", "Bad data format", "Missing bytes"}, func(s string) bool { return strings.Contains(err.Error(), s) })
}
