package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Repeat refuses a call that has been made too often: the runaway loop that sends one
// text again and again. The zero value guards nothing.
type Repeat struct {
	// Max is how often the same call may be made within Per. Zero: no guard.
	Max int
	// Per is the length of the window, which begins with each call.
	Per time.Duration
	// Fingerprint says which calls are the same. Nil: method, URL and body, read through
	// GetBody. Empty: the call is not guarded. Only a keyed hash of it is kept.
	Fingerprint func(*http.Request) string
}

// RepeatedError refuses a call that was made too often. Nothing was sent and nothing
// was charged.
type RepeatedError struct {
	Provider string
	// Max calls of this sort were made within Per.
	Max int
	Per time.Duration
	// RetryAt is when the call would pass.
	RetryAt time.Time
}

// Error names the provider and the rule.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("%s: the same call more than %d times in %v", e.Provider, e.Max, e.Per)
}

// maxRepeats bounds the calls that are remembered; beyond, the oldest half is forgotten.
const maxRepeats = 100_000

// repeats counts equal calls. It keeps keyed hashes and instants, nothing of the calls.
type repeats struct {
	mu       sync.Mutex // guards all
	key      []byte
	now, old map[[16]byte][]time.Time
}

// check counts the call, or refuses it.
func (r *repeats) check(c *call) error {
	if c.p.Repeat.Max == 0 {
		return nil // before sum, which the call keeps, is allocated
	}
	sum, ok := r.fingerprint(c.req, &c.p.Repeat)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, err := r.refused(c.p, sum, c.start)
	if err != nil {
		return err
	}
	c.print = &sum
	if len(r.now) >= maxRepeats/2 {
		r.old, r.now = r.now, nil
	}
	if r.now == nil {
		r.now = map[[16]byte][]time.Time{}
	}
	r.now[sum] = append(seen, c.start)
	return nil
}

// would says whether the call would be refused, and counts nothing.
func (r *repeats) would(p *provider, req *http.Request, now time.Time) error {
	sum, ok := r.fingerprint(req, &p.Repeat)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.refused(p, sum, now)
	return err
}

// refused returns when the call was made within the window, and the refusal if that is
// too often. r.mu is held.
func (r *repeats) refused(p *provider, sum [16]byte, now time.Time) ([]time.Time, error) {
	rule := &p.Repeat
	seen, ok := r.now[sum]
	if !ok {
		seen = r.old[sum]
	}
	for len(seen) > 0 && now.Sub(seen[0]) >= rule.Per {
		seen = seen[1:]
	}
	if len(seen) >= rule.Max {
		return seen, &RepeatedError{Provider: p.Name, Max: rule.Max, Per: rule.Per, RetryAt: seen[len(seen)-rule.Max].Add(rule.Per)}
	}
	return seen, nil
}

// forget takes back a call of which nothing was sent: it was never made.
func (r *repeats) forget(c *call) {
	if c.print == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range []map[[16]byte][]time.Time{r.now, r.old} { // others may have come since
		if seen, ok := m[*c.print]; ok {
			if i := slices.IndexFunc(seen, c.start.Equal); i >= 0 {
				m[*c.print] = slices.Delete(slices.Clone(seen), i, i+1)
			}
			break
		}
	}
	c.print = nil
}

// fingerprint returns the keyed hash of what makes the call the same as another.
func (r *repeats) fingerprint(req *http.Request, rule *Repeat) (sum [16]byte, ok bool) {
	if rule.Max == 0 {
		return sum, false
	}
	h := r.hash()
	if rule.Fingerprint != nil {
		s := rule.Fingerprint(req)
		_, _ = io.WriteString(h, s)
		copy(sum[:], h.Sum(nil))
		return sum, s != ""
	}
	fmt.Fprintf(h, "%q %q ", req.Method, req.URL.String())
	if hasBody(req) {
		if req.GetBody == nil {
			return sum, false // a body that can be read once only is nobody's repeat
		}
		body, err := req.GetBody()
		if err != nil || body == nil {
			return sum, false // the price step or the send reports it
		}
		defer body.Close()
		_, _ = io.Copy(h, body) // all of it: long prompts differ at their end
	}
	copy(sum[:], h.Sum(nil))
	return sum, true
}

func (r *repeats) hash() hash.Hash {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.key == nil {
		r.key = []byte(rand.Text())
	}
	return hmac.New(sha256.New, r.key)
}
