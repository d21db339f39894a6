package redistest

import (
	"bufio"
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

// Secret is a password that URLs escape.
const Secret = "s3cret/p@ss+w=rd&x"

// NoSecret fails if the text has the password, plain, escaped or in base64.
func NoSecret(t testing.TB, text string) {
	t.Helper()
	b := []byte(Secret)
	for _, form := range []string{
		Secret, url.QueryEscape(Secret), url.PathEscape(Secret), url.UserPassword("", Secret).String()[1:],
		base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b), base64.URLEncoding.EncodeToString(b),
		base64.RawURLEncoding.EncodeToString(b), base64.StdEncoding.EncodeToString([]byte(":" + Secret))[4:20],
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

// NoErrorHasThePassword opens something through clients that cannot work, and looks for the
// password in the errors. foreign is a key that it does not take if it is a string.
func NoErrorHasThePassword(t *testing.T, foreign string, open func(redis.UniversalClient) error) {
	s := Start(t)
	admin := s.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "app", "on", ">"+Secret, "~*", "&*", "+@all").Err())
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "weak", "on", ">"+Secret, "~*", "&*", "+@all", "-eval", "-evalsha").Err())
	require.NoError(t, admin.Set(t.Context(), foreign, Secret, 0).Err())
	node := Start(t, "--cluster-enabled", "yes", "--requirepass", Secret)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	strict := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "redis"}
	withURL := func(addr string) redis.Options {
		o, err := redis.ParseURL("redis://app:" + url.QueryEscape(Secret) + "@" + addr + "/0")
		require.NoError(t, err)
		return *o
	}
	for name, o := range map[string]redis.Options{
		"nobody there":     withURL(gone.Addr().String()),
		"wrong password":   {Addr: s.Addr, Username: "app", Password: Secret + "2"},
		"wrong user":       {Addr: s.Addr, Username: Secret, Password: Secret},
		"no scripts":       {Addr: s.Addr, Username: "weak", Password: Secret},
		"no TLS there":     {Addr: s.Addr, Username: "app", Password: Secret, TLSConfig: strict},
		"a cluster's node": {Addr: node.Addr, Password: Secret},
		"echo":             withURL(startEcho(t)),
		"echo by password": {Addr: startEcho(t), Password: Secret},
		"foreign values":   {Addr: s.Addr, Username: "app", Password: Secret},
	} {
		t.Run(name, func(t *testing.T) {
			o.MaxRetries, o.DialTimeout = -1, time.Second
			client := redis.NewClient(&o)
			defer client.Close()
			err := open(client)
			require.Error(t, err)
			NoSecret(t, err.Error())
			NoSecret(t, fmt.Sprintf("%v %+v %q", err, err, err))
		})
	}
}
