package redislimiter

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// startCluster starts three masters without replicas.
func startCluster(t testing.TB) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for range 3 {
		_, bus, err := net.SplitHostPort(freeAddr(t))
		require.NoError(t, err)
		s := startServer(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		addrs = append(addrs, s.addr)
	}
	cli := append([]string{"--cluster", "create"}, addrs...)
	out, err := exec.Command(program(t, "redis-cli"), append(cli, "--cluster-replicas", "0", "--cluster-yes")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true, PoolSize: 32})
	t.Cleanup(func() { _ = c.Close() })
	require.Eventually(t, func() bool {
		return c.ForEachMaster(context.Background(), func(ctx context.Context, m *redis.Client) error {
			info, err := m.ClusterInfo(ctx).Result()
			if err == nil && field(info, "cluster_state") != "ok" {
				err = redis.ErrClosed
			}
			return err
		}) == nil
	}, 20*time.Second, 20*time.Millisecond, "the cluster does not come up")
	return c
}

// sentinel watches over a master and its replica.
type sentinel struct {
	master, replica *server
	client          *redis.Client
}

// startSentinel starts a master, a replica and one sentinel, and a client of theirs.
func startSentinel(t testing.TB) *sentinel {
	t.Helper()
	s := &sentinel{master: startServer(t, "--repl-diskless-sync-delay", "0")}
	host, port, err := net.SplitHostPort(s.master.addr)
	require.NoError(t, err)
	s.replica = startServer(t, "--replicaof", host+" "+port)
	ctx := context.Background()
	replica := s.replica.client(t)
	require.Eventually(t, func() bool {
		return field(replica.Info(ctx, "replication").Val(), "master_link_status") == "up"
	}, 20*time.Second, 20*time.Millisecond, "the replica does not catch up")

	watch := &server{addr: freeAddr(t), dir: t.TempDir()}
	t.Cleanup(watch.kill)
	_, mine, err := net.SplitHostPort(watch.addr)
	require.NoError(t, err)
	conf := filepath.Join(watch.dir, "sentinel.conf")
	text := "port " + mine + "\nbind 127.0.0.1\ndir " + watch.dir + "\nsentinel monitor books " + host + " " + port + " 1\n" +
		"sentinel down-after-milliseconds books 500\nsentinel failover-timeout books 3000\n"
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	watch.run(t, program(t, "redis-server"), conf, "--sentinel")
	sc := redis.NewSentinelClient(&redis.Options{Addr: watch.addr})
	defer sc.Close()
	require.Eventually(t, func() bool {
		m, err := sc.Master(ctx, "books").Result()
		return err == nil && m["num-slaves"] == "1"
	}, 30*time.Second, 50*time.Millisecond, "the sentinel does not see the replica")
	s.client = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "books", SentinelAddrs: []string{watch.addr}, PoolSize: 32})
	t.Cleanup(func() { _ = s.client.Close() })
	return s
}
