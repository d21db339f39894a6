package redistest

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

	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

// StartCluster starts three masters without replicas.
func StartCluster(t testing.TB) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for range 3 {
		_, bus, err := net.SplitHostPort(FreeAddr(t))
		require.NoError(t, err)
		s := Start(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		addrs = append(addrs, s.Addr)
	}
	cli := append([]string{"--cluster", "create"}, addrs...)
	out, err := exec.Command(program(t, "redis-cli"), append(cli, "--cluster-replicas", "0", "--cluster-yes")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true, PoolSize: 32})
	t.Cleanup(func() { _ = c.Close() })
	require.Eventually(t, func() bool {
		return c.ForEachMaster(context.Background(), func(ctx context.Context, m *redis.Client) error {
			info, err := m.ClusterInfo(ctx).Result()
			if err == nil && redisstore.Field(info, "cluster_state") != "ok" {
				err = redis.ErrClosed
			}
			return err
		}) == nil
	}, 20*time.Second, 20*time.Millisecond, "the cluster does not come up")
	return c
}

// Sentinel watches over a master and its replica.
type Sentinel struct {
	Master, Replica *Server
	Client          *redis.Client
}

// StartSentinel starts a master, a replica and one sentinel, and a client of theirs.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{Master: Start(t, "--repl-diskless-sync-delay", "0")}
	host, port, err := net.SplitHostPort(s.Master.Addr)
	require.NoError(t, err)
	s.Replica = Start(t, "--replicaof", host+" "+port)
	ctx := context.Background()
	replica := s.Replica.Client(t)
	require.Eventually(t, func() bool {
		return redisstore.Field(replica.Info(ctx, "replication").Val(), "master_link_status") == "up"
	}, 20*time.Second, 20*time.Millisecond, "the replica does not catch up")

	watch := &Server{Addr: FreeAddr(t), dir: t.TempDir()}
	t.Cleanup(watch.Kill)
	_, mine, err := net.SplitHostPort(watch.Addr)
	require.NoError(t, err)
	conf := filepath.Join(watch.dir, "sentinel.conf")
	text := "port " + mine + "\nbind 127.0.0.1\ndir " + watch.dir + "\nsentinel monitor books " + host + " " + port + " 1\n" +
		"sentinel down-after-milliseconds books 500\nsentinel failover-timeout books 3000\n"
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	watch.run(t, program(t, "redis-server"), conf, "--sentinel")
	sc := redis.NewSentinelClient(&redis.Options{Addr: watch.Addr})
	defer sc.Close()
	require.Eventually(t, func() bool {
		m, err := sc.Master(ctx, "books").Result()
		return err == nil && m["num-slaves"] == "1"
	}, 30*time.Second, 50*time.Millisecond, "the sentinel does not see the replica")
	s.Client = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "books", SentinelAddrs: []string{watch.Addr}, PoolSize: 32})
	t.Cleanup(func() { _ = s.Client.Close() })
	return s
}

// Part cuts the replica off: it misses what is written from now on.
func (s *Sentinel) Part(t testing.TB) {
	t.Helper()
	ctx, replica := context.Background(), s.Replica.Client(t)
	require.NoError(t, replica.ConfigSet(ctx, "masteruser", "nobody").Err())
	require.NoError(t, replica.ConfigSet(ctx, "masterauth", "nothing").Err())
	require.NoError(t, s.Master.Client(t).ClientKillByFilter(ctx, "TYPE", "replica").Err())
	require.Eventually(t, func() bool {
		return redisstore.Field(replica.Info(ctx, "replication").Val(), "master_link_status") == "down"
	}, 10*time.Second, 5*time.Millisecond)
}
