package gateway

import (
	"net"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPublicAddresses: whatever a vendor's name resolves to, only the Internet is dialled.
func TestPublicAddresses(t *testing.T) {
	for ip, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:2800:220:1::1": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true,
		"127.0.0.1": false, "127.1.2.3": false, "::1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "fd00::1": false, "fc00::1": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false, "168.63.129.16": false,
		"100.64.0.1": false, "100.127.255.255": false, "192.0.0.192": false, "198.18.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"224.0.0.1": false, "ff02::1": false, "203.0.113.5": false, "2001:db8::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::a00:1": false, "2002:7f00:1::": false, "2001:0:53aa:64c::1": false,
	} {
		require.Equal(t, want, isPublic(netip.MustParseAddr(ip)), ip)
	}
}

// TestSameOrigin: what looks like the vendor is not always the vendor.
func TestSameOrigin(t *testing.T) {
	vendor := &url.URL{Scheme: "https", Host: "api.example.com"}
	for location, want := range map[string]bool{
		"https://api.example.com/x": true, "https://API.example.com:443/x": true, "https://api.example.com:/x": true,
		"http://api.example.com/x": false, "https://api.example.com:8443/x": false, "https://api.example.com.evil.test/x": false, "https://api.example.com@evil.test/x": false,
	} {
		u, err := url.Parse(location)
		require.NoError(t, err)
		require.Equal(t, want, isSameOrigin(u, vendor), location)
		require.Equal(t, want, isSameOrigin(vendor, u), location)
	}
}

// TestOwnAddresses: a listener on all addresses is found under each of them.
func TestOwnAddresses(t *testing.T) {
	var o ownAddrs
	o.add(&net.TCPAddr{IP: net.IPv4(10, 0, 3, 5), Port: 8788})
	o.add(&net.TCPAddr{IP: net.IPv6unspecified, Port: 8787})
	o.add(&net.UnixAddr{Name: "/run/x"})
	for at, want := range map[string]bool{
		"10.0.3.5:8788": true, "[::ffff:10.0.3.5]:8788": true, "10.0.3.5:8789": false, "127.0.0.1:8788": false,
		"127.0.0.1:8787": true, "[::1]:8787": true, "0.0.0.0:8787": true, "192.0.2.1:8787": false, "127.0.0.1:80": false,
	} {
		require.Equal(t, want, o.has(netip.MustParseAddrPort(at)), at)
	}
}

func TestSentencesAreASCII(t *testing.T) {
	require.Equal(t, `"a\"b\\c??"`, quoted("a\"b\\c\nü"))
}
