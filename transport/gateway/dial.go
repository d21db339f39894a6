package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
)

// base sends the attempts of the Transport: it puts the real upstream in the place of the
// host that stands for the provider. What it sends was metered, since only the Transport
// calls it.
type base struct{ g *Gateway }

var errNoCall = errors.New("gateway: a request that is no call of the gateway")

// RoundTrip sends one attempt.
func (b base) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req.Context())
	if c == nil || c.up == nil || req.URL.Host != c.up.host {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errNoCall
	}
	out := req.WithContext(req.Context())
	out.URL = c.up.target(req.URL, req.URL.RawQuery)
	out.Host = ""
	return c.up.conns.RoundTrip(out)
}

// CloseIdleConnections closes those of all providers.
func (b base) CloseIdleConnections() {
	s := b.g.snap.Load()
	if s == nil {
		return
	}
	for _, u := range s.upstreams {
		if c, ok := u.conns.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		}
	}
}

// target is where a URL of the provider leads to.
func (u *upstream) target(from *url.URL, rawQuery string) *url.URL {
	to := *from
	if u.prefix != "" {
		to.RawPath = u.prefix + from.EscapedPath()
		to.Path = strings.TrimSuffix(u.Upstream.Path, "/") + from.Path
	}
	to.Scheme, to.Host, to.RawQuery = u.Upstream.Scheme, u.Upstream.Host, rawQuery
	return &to
}

// connSettings are what connections depend on.
type connSettings struct {
	timeouts     Timeouts
	allowPrivate bool
}

// newConns makes the connections of a provider. The environment has no say in them, an
// answer is neither decompressed nor followed, and where they lead is checked.
func (g *Gateway) newConns(s connSettings) *http.Transport {
	d := &net.Dialer{
		Timeout: s.timeouts.Connect, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return g.mayDial(address, s.allowPrivate)
		},
	}
	return &http.Transport{
		DialContext:            d.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    s.timeouts.TLS,
		ResponseHeaderTimeout:  s.timeouts.Response,
		MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConnsPerHost:    128,
		ReadBufferSize:         2 << 10, // large pieces go around them
		WriteBufferSize:        2 << 10,
		IdleConnTimeout:        90 * time.Second,
		ExpectContinueTimeout:  time.Second,
	}
}

var (
	errLoop    = errors.New("the upstream's name leads back to this gateway")
	errPrivate = errors.New("the upstream's name leads to an address that is not public; set allow_private if that is meant")
)

// mayDial looks at the address that a name was resolved to, when nothing can change it any
// more.
func (g *Gateway) mayDial(address string, allowPrivate bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return errPrivate
	}
	switch {
	case g.own.has(a):
		return errLoop
	case !allowPrivate && !isPublic(a.Addr()):
		return errPrivate
	}
	return nil
}

// special are address blocks that are not the Internet, beside those that netip knows:
// carrier-grade NAT, protocol assignments, benchmarks, reserved, Azure's metadata, IPv4 in
// IPv6 (6to4, Teredo, NAT64 for private use), site-local, documentation (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// nat64 holds IPv4 addresses, which are judged by themselves.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// isPublic reports whether an address can belong to a vendor.
func isPublic(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	for _, p := range special {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// ownAddrs are the addresses of our listeners.
type ownAddrs struct {
	mu  sync.Mutex
	all []netip.AddrPort
}

func (o *ownAddrs) add(a net.Addr) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, tcp.AddrPort())
}

// has reports whether a is one of ours. A listener on all addresses has those of all
// interfaces.
func (o *ownAddrs) has(a netip.AddrPort) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ip := a.Addr().WithZone("").Unmap()
	for _, mine := range o.all {
		at := mine.Addr().WithZone("").Unmap()
		if mine.Port() == a.Port() && (at == ip || ip.IsUnspecified() || at.IsUnspecified() && isLocal(ip)) {
			return true
		}
	}
	return false
}

// isLocal reports whether the address belongs to this machine.
func isLocal(ip netip.Addr) bool {
	if ip.IsLoopback() {
		return true
	}
	addrs, _ := net.InterfaceAddrs() // without them only loopback is known
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if mine, ok := netip.AddrFromSlice(n.IP); ok && mine.Unmap() == ip {
				return true
			}
		}
	}
	return false
}
