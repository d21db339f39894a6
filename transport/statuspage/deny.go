package statuspage

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlay-go/outlay/budget"
)

const (
	maxFailures = 10   // of one peer in a minute; then it is not even asked who it is
	maxPeers    = 1024 // remembered, about 100 KiB. More at once are not bounded, or they would keep everybody out
	maxDenied   = 60   // entries about denied tries in a minute
)

// doorman counts failed authorizations by the minute.
type doorman struct {
	mu     sync.Mutex // guards all below
	minute int64      // since 1970
	peers  map[netip.Addr]int
	noted  int
	missed int // denied tries without an entry
}

// enter begins a new minute if there is one. d.mu is held.
func (d *doorman) enter(now time.Time) {
	if minute := now.Unix() / 60; minute != d.minute {
		d.minute, d.peers, d.noted = minute, map[netip.Addr]int{}, 0
	}
}

// wait is how long a peer that failed too often has to wait.
func (d *doorman) wait(peer netip.Addr, now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enter(now)
	if d.peers[peer] < maxFailures {
		return 0
	}
	return time.Unix((d.minute+1)*60, 0).Sub(now)
}

// failed counts a failure, and reports whether it gets an entry, and how many before it
// got none.
func (d *doorman) failed(peer netip.Addr, now time.Time) (missed int, noted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enter(now)
	if _, known := d.peers[peer]; known || len(d.peers) < maxPeers {
		d.peers[peer]++
	}
	if d.noted >= maxDenied {
		d.missed++
		return 0, false
	}
	d.noted++
	missed, d.missed = d.missed, 0
	return missed, true
}

// peerOf is who sent a request: an address, or the network that one subscriber of IPv6
// has. The zero Addr stands for all that have none.
func peerOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); err == nil && a.Is6() && !a.IsLoopback() {
		return p.Addr()
	}
	return a
}

// tooMany refuses a peer that failed too often before it is asked who it is.
func (a *admin) tooMany(w http.ResponseWriter, r *http.Request) bool {
	wait := a.door.wait(peerOf(r), time.Now())
	if wait <= 0 {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
	answerProblem(w, fail(http.StatusTooManyRequests, "too many failed authorizations from this address"))
	return true
}

// denied answers someone who may not do something, and keeps that it was tried.
func (a *admin) denied(w http.ResponseWriter, r *http.Request, action Action, actor string, status int) {
	peer := peerOf(r)
	missed, noted := a.door.failed(peer, time.Now())
	if noted {
		where := "an unknown address"
		if peer.IsValid() {
			where = peer.String()
		}
		why := fmt.Sprintf("%s, from %s", http.StatusText(status), where)
		if missed > 0 {
			why += fmt.Sprintf("; %d more tries were not noted", missed)
		}
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		e := budget.Audited{By: budget.By{Who: cmp.Or(clip(actor), "unknown"), Why: why}, Action: string(action), Target: target(r), Denied: true}
		e.Hold, _ = budget.ParseHoldID(r.PathValue("id"))
		_ = a.t.Note(ctx, e) // nothing was changed, whether it can be noted or not
	}
	answerProblem(w, fail(status, ""))
}

// target is what a request is about, as its path has it.
func target(r *http.Request) (t budget.Target) {
	name := clip(r.PathValue("name"))
	if strings.Contains(r.Pattern, "/budgets/") {
		return budget.Target{Budget: name}
	}
	return budget.Target{Provider: name}
}
