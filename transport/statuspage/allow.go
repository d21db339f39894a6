package statuspage

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

var (
	errUnwatched = errors.New("the page watches no transport")
	errPartial   = errors.New("the ledger did not answer, and a bill without it would be wrong")
)

// reasonOf is the text of an error of ours; others may hold anything.
func reasonOf(err error) string {
	if errors.Is(err, errUnwatched) || errors.Is(err, errPartial) {
		return err.Error()
	}
	return "the state could not be read"
}

// fromHere reports whether a request comes from this machine. The name it asks for must be
// a loopback one too, or a page of the web could have its own name point here; and a proxy
// on this machine would make everybody local.
func fromHere(r *http.Request) bool {
	if !isLoopback(r.RemoteAddr) || !isLoopback(r.Host) {
		return false
	}
	for name := range r.Header {
		if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") || name == "X-Real-Ip" || name == "Via" {
			return false
		}
	}
	return true
}

// isLoopback reports whether host, with or without a port, is this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
