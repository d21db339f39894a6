package redisledger

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// secret is a password that URLs escape.
const secret = "s3cret/p@ss+w=rd&x"

// noSecret fails if the text has the password, plain, escaped or in base64.
func noSecret(t testing.TB, text string) {
	t.Helper()
	b := []byte(secret)
	for _, form := range []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:],
		base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b), base64.URLEncoding.EncodeToString(b),
		base64.RawURLEncoding.EncodeToString(b), base64.StdEncoding.EncodeToString([]byte(":" + secret))[4:20],
	} {
		require.NotContains(t, text, form)
	}
}

// startEcho starts a server that knows no command and, as old servers do, repeats what it
// was told.
func startEcho(t testing.TB) string {
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
			go echo(c)
		}
	}()
	return l.Addr().String()
}

func echo(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		var words int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
			return
		}
		var args []string
		for range words {
			var n int
			if _, err := fmt.Fscanf(in, "$%d\r\n", &n); err != nil {
				return
			}
			word := make([]byte, n+2)
			if _, err := io.ReadFull(in, word); err != nil {
				return
			}
			args = append(args, "`"+string(word[:n])+"`")
		}
		fmt.Fprintf(c, "-ERR unknown command %s, with args beginning with: %s\r\n", args[0], strings.ReplaceAll(strings.Join(args[1:], ", "), "\n", " "))
	}
}

func TestNoErrorHasThePassword(t *testing.T) {
	s := startServer(t)
	admin := s.client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">"+secret, "~*", "&*", "+@all").Err())
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "weak", "on", ">"+secret, "~*", "&*", "+@all", "-eval", "-evalsha").Err())
	require.NoError(t, admin.Set(t.Context(), "mine:{ledger}:generation", secret, 0).Err())
	node := startServer(t, "--cluster-enabled", "yes", "--requirepass", secret)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	strict := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis"}
	withURL := func(addr string) redis.Options {
		o, err := redis.ParseURL("redis://app:" + url.QueryEscape(secret) + "@" + addr + "/0")
		require.NoError(t, err)
		return *o
	}
	for name, o := range map[string]redis.Options{
		"nobody there":     withURL(gone.Addr().String()),
		"wrong password":   {Addr: s.addr, Username: "app", Password: secret + "2"},
		"wrong user":       {Addr: s.addr, Username: secret, Password: secret},
		"no scripts":       {Addr: s.addr, Username: "weak", Password: secret},
		"no TLS there":     {Addr: s.addr, Username: "app", Password: secret, TLSConfig: strict},
		"a cluster's node": {Addr: node.addr, Password: secret},
		"echo":             withURL(startEcho(t)),
		"echo by password": {Addr: startEcho(t), Password: secret},
		"foreign values":   {Addr: s.addr, Username: "app", Password: secret},
	} {
		t.Run(name, func(t *testing.T) {
			o.MaxRetries, o.DialTimeout = -1, time.Second
			client := redis.NewClient(&o)
			defer client.Close()
			_, err := New(client, Options{Prefix: "mine"})
			require.Error(t, err)
			noSecret(t, err.Error())
			noSecret(t, fmt.Sprintf("%v %+v %q", err, err, err))
		})
	}
}

func TestNoNoticeHasThePassword(t *testing.T) {
	s := startServer(t, "--requirepass", secret)
	client := redis.NewClient(&redis.Options{Addr: s.addr, Password: secret, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	l := open1(t, client, Options{Timeout: quick, beat: 20 * time.Millisecond})
	spend(t, l, month(), "1")
	s.kill()
	var told strings.Builder
	for range 20 {
		report, err := l.Hold(context.Background(), holdOf(month(), "1"))
		told.WriteString(fmt.Sprint(err, report.Notices))
	}
	require.Contains(t, told.String(), "does not answer")
	noSecret(t, told.String())
}

// Package transport shows the mode of a ledger that tells one.
var _ interface{ Mode() string } = (*Ledger)(nil)
