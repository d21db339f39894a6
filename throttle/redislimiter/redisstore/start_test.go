package redisstore_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/outlay-go/outlay/throttle/redislimiter/redisstore"
)

var errAway = errors.New("away")

// startOf starts a server of a version, which knows INFO and nothing else.
func startOf(t *testing.T, version string) redis.UniversalClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go tell(c, "# Server\r\nredis_version:"+version+"\r\nos:Linux\r\n")
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func tell(c net.Conn, info string) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch word := strings.ToLower(strings.TrimSpace(line)); {
		case word == "info":
			fmt.Fprintf(c, "$%d\r\n%s\r\n", len(info), info)
		case word == "hello" || word == "client":
			fmt.Fprint(c, "-ERR unknown command\r\n")
		}
	}
}

func TestOldServersAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"5.0.14": false, "6.0.16": false, "6.2.0": true, "7.0.15": true, "7.2.4": true, "8.2": true, "10.0.0": true, "unstable": true, "": true,
	} {
		t.Run(version, func(t *testing.T) {
			err := redisstore.New(startOf(t, version), 5*time.Second, errAway).Start(t.Context())
			if ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errAway)
			require.ErrorContains(t, err, "the server is Redis "+version+", at least 6.2 is needed")
		})
	}
}
